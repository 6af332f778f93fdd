// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// device is one in the form in which Berth's evaluator takes it.
type device struct {
	Driver     string                    `json:"driver"`
	Allow      bool                      `json:"allowMultipleAllocations"`
	Attributes map[string]map[string]any `json:"attributes,omitempty"`
	Capacity   map[string]string         `json:"capacity,omitempty"`
}

func pointer[T any](value T) *T { return &value }

// kubernetes is the same device as Kubernetes' evaluator takes it.
func (d device) kubernetes() dracel.Device {
	out := dracel.Device{
		Driver:                   d.Driver,
		AllowMultipleAllocations: &d.Allow,
		Attributes:               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}
	for name, attribute := range d.Attributes {
		var a resourceapi.DeviceAttribute
		for kind, value := range attribute {
			switch kind {
			case "int":
				a.IntValue = pointer(value.(int64))
			case "bool":
				a.BoolValue = pointer(value.(bool))
			case "string":
				a.StringValue = pointer(value.(string))
			case "version":
				a.VersionValue = pointer(value.(string))
			case "ints":
				a.IntValues = value.([]int64)
			case "bools":
				a.BoolValues = value.([]bool)
			case "strings":
				a.StringValues = value.([]string)
			case "versions":
				a.VersionValues = value.([]string)
			}
		}
		out.Attributes[resourceapi.QualifiedName(name)] = a
	}
	for name, text := range d.Capacity {
		out.Capacity[resourceapi.QualifiedName(name)] = quantityOf(text)
	}
	return out
}

// publishedDevice has what the published selectors ask for.
func publishedDevice() device {
	return device{
		Driver: "gpu.nvidia.com",
		Attributes: map[string]map[string]any{
			"type":                            {"string": "gpu"},
			"uuid":                            {"string": "GPU-18db0e85-99e9-c746-8531-ffeb86328b39"},
			"productName":                     {"string": "NVIDIA H100 80GB HBM3"},
			"brand":                           {"string": "Nvidia"},
			"architecture":                    {"string": "Hopper"},
			"profile":                         {"string": "1g.10gb"},
			"index":                           {"int": int64(0)},
			"cudaComputeCapability":           {"version": "9.0.0"},
			"driverVersion":                   {"version": "580.65.6"},
			"resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
		},
		Capacity: map[string]string{"memory": "81559Mi", "multiprocessors": "132"},
	}
}

type generator struct {
	*rand.Rand
	variables []variable
}

// variable is one of a macro around.
type variable struct {
	name string
	kind kind
}

type kind int

const (
	boolean kind = iota
	integer
	unsigned
	double
	text
	version
	quantity
	integers
	texts
	mapping // of texts to integers
	optionalInt
	optionalText
	dynamic // an attribute: of any kind
	lastKind
)

func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

var (
	domains = []string{"gpu.nvidia.com", "gpu.nvidia.com", "gpu.nvidia.com", "a.example", "missing.example"}
	ids     = []string{"index", "name", "healthy", "version", "modes", "sizes", "missing"}
	amounts = []string{"memory", "memory", "cores", "missing"}
)

func (g *generator) device() device {
	d := device{
		Driver:     g.one("gpu.nvidia.com", "gpu.nvidia.com", "a.example", "b.example"),
		Allow:      g.IntN(2) == 0,
		Attributes: map[string]map[string]any{},
		Capacity:   map[string]string{},
	}
	name := func(id string) string {
		if domain := g.one("", "", "gpu.nvidia.com", "a.example", "resource.kubernetes.io"); domain != "" && domain != d.Driver {
			return domain + "/" + id
		}
		return id
	}
	for range g.IntN(20) {
		d.Attributes[name(g.one(ids...))] = g.attribute()
	}
	for range g.IntN(6) {
		d.Capacity[name(g.one(amounts...))] = g.amount()
	}
	return d
}

func (g *generator) attribute() map[string]any {
	switch g.IntN(9) {
	case 0, 1:
		return map[string]any{"int": int64(g.IntN(8) - 2)}
	case 2:
		return map[string]any{"bool": g.IntN(2) == 0}
	case 3, 4:
		return map[string]any{"string": g.word()}
	case 5:
		return map[string]any{"version": g.semver()}
	case 6:
		list := make([]int64, g.IntN(4)+1)
		for i := range list {
			list[i] = int64(g.IntN(5))
		}
		return map[string]any{"ints": list}
	case 7:
		list := make([]string, g.IntN(4)+1)
		for i := range list {
			list[i] = g.word()
		}
		return map[string]any{"strings": list}
	default:
		if g.IntN(2) == 0 {
			return map[string]any{"bools": []bool{g.IntN(2) == 0, true}}
		}
		return map[string]any{"versions": []string{g.semver(), "1.0.0"}}
	}
}

func (g *generator) word() string {
	return g.one("", "gpu", "GPU", "a", "b", "A100", "NVIDIA H100 80GB", "h100", "1g.5gb", "  x ", "ü€", "a-b-c", "10", "1.5", "true", "aXa")
}

func (g *generator) semver() string {
	return g.one("1.0.0", "1.2.3", "580.65.6", "0.0.0", "1.2.3-alpha.1", "1.2.3-alpha.beta", "1.2.3-1", "1.2.3+build", "2.0.0-rc.1+x.y")
}

func (g *generator) amount() string {
	return g.one("0", "1", "10", "1k", "1Ki", "40Gi", "81559Mi", "1.5", "1500m", "0.1", "100n", "1e3", "10Ti", "2E", "1.5Gi", "-1", "16384", "100000Gi", "3u", "1.0")
}

func quote(s string) string { return strconv.Quote(s) }

// expression is one that is a bool, mostly.
func (g *generator) expression() string {
	switch g.IntN(40) {
	case 0: // no bool
		return g.of(kind(g.IntN(int(lastKind))), 2)
	case 1: // cut off
		s := g.of(boolean, 3)
		return strings.ToValidUTF8(s[:g.IntN(len(s)+1)], "")
	default:
		return g.of(boolean, 2+g.IntN(4))
	}
}

func (g *generator) literal(k kind) string {
	switch k {
	case boolean:
		return g.one("true", "false")
	case integer:
		return g.one("0", "1", "2", "3", "-1", "10", "9223372036854775807", "-9223372036854775808", "0x1F", "4")
	case unsigned:
		return g.one("0u", "1u", "2u", "10u", "18446744073709551615u")
	case double:
		return g.one("0.0", "1.0", "1.5", "-2.5", "1e3", "3.0", ".5")
	case text:
		switch g.IntN(8) {
		case 0:
			return "'" + strings.ReplaceAll(g.word(), "'", "") + "'"
		case 1:
			return g.one(`r'\d'`, `"""a"b"""`, `'\x41'`, `"\u00fc"`, `'a\tb'`, `"\101"`)
		}
		return quote(g.word())
	case version:
		if g.IntN(4) == 0 {
			return "semver(" + quote(g.one("v1.2", "1", "01.2.3", "v1.0.0", "x", "1.2.3.4", "")) + g.one(", true", ", false", "") + ")"
		}
		return "semver(" + quote(g.semver()) + ")"
	case quantity:
		if g.IntN(8) == 0 {
			return "quantity(" + quote(g.one("x", "", "1x", "1e", "Ki", ".", "+1", "1E3", "123456789012345678901", "0.0000000001")) + ")"
		}
		return "quantity(" + quote(g.amount()) + ")"
	case integers:
		return g.one("[]", "[1]", "[1, 2, 3]", "[3, 1, 2]", "[2, 2]", "[0, -1, 1,]")
	case texts:
		return g.one("[]", `["a"]`, `["gpu", "a", "b"]`, `["b", "a"]`, `["", "ü€"]`, `["A100", "h100"]`)
	case mapping:
		return g.one("{}", `{"a": 1}`, `{"a": 1, "b": 2}`, `{"gpu": 0, "index": 3}`)
	case optionalInt:
		return g.one("optional.none()", "optional.of(1)", "optional.ofNonZeroValue(0)", "optional.of(3)")
	case optionalText:
		return g.one("optional.none()", `optional.of("a")`, `optional.ofNonZeroValue("")`, `optional.of("gpu")`)
	default:
		return g.one("dyn(1)", `dyn("a")`, "dyn(true)", "dyn([1, 2])", "dyn(null)", "dyn(1.5)", "dyn(2u)", `dyn({"a": 1})`, `dyn(["a"])`)
	}
}

func (g *generator) domain() string {
	if g.IntN(15) == 0 {
		return g.of(text, 1)
	}
	return quote(g.one(domains...))
}

func (g *generator) attributePath() string {
	id := g.one(ids...)
	base := "device.attributes[" + g.domain() + "]"
	switch g.IntN(8) {
	case 0:
		return base + "[" + quote(id) + "]"
	case 1:
		return "(" + g.of(boolean, 1) + " ? " + base + " : device.attributes[" + g.domain() + "])." + id
	default:
		return base + "." + id
	}
}

// of is an expression of that kind; now and then of another.
func (g *generator) of(k kind, depth int) string {
	if g.IntN(40) == 0 {
		k = kind(g.IntN(int(lastKind)))
	}
	if depth > 0 && g.IntN(12) == 0 {
		for range 3 {
			if len(g.variables) == 0 {
				break
			}
			if v := g.variables[g.IntN(len(g.variables))]; v.kind == k {
				return v.name
			}
		}
	}
	for _, v := range g.variables {
		if v.kind == k && g.IntN(3) == 0 {
			return v.name
		}
	}
	if depth <= 0 {
		return g.leaf(k)
	}
	depth--
	if g.IntN(14) == 0 {
		return "(" + g.of(boolean, depth) + " ? " + g.of(k, depth) + " : " + g.of(k, depth) + ")"
	}
	if g.IntN(18) == 0 {
		return g.bind(k, depth)
	}
	switch k {
	case boolean:
		return g.boolean(depth)
	case integer:
		return g.integer(depth)
	case unsigned:
		return g.one(g.literal(k), "uint("+g.of(integer, depth)+")", "("+g.of(unsigned, depth)+g.one(" + ", " - ", " * ", " / ", " % ")+g.of(unsigned, depth)+")")
	case double:
		return g.one(g.literal(k), "double("+g.of(integer, depth)+")", "double("+g.of(text, depth)+")", g.of(quantity, depth)+".asApproximateFloat()",
			"("+g.of(double, depth)+g.one(" + ", " - ", " * ", " / ")+g.of(double, depth)+")", "-"+g.of(double, depth), "[1.5, 0.5]."+g.one("max", "min", "sum")+"()")
	case text:
		return g.text(depth)
	case version:
		return g.literal(k)
	case quantity:
		return g.quantity(depth)
	case integers:
		return g.list(k, integer, depth)
	case texts:
		return g.list(k, text, depth)
	case mapping:
		return g.mapping(depth)
	case optionalInt, optionalText:
		return g.optional(k, depth)
	default:
		return g.dynamic(depth)
	}
}

func (g *generator) leaf(k kind) string {
	switch {
	case k == text && g.IntN(4) == 0:
		return "device.driver"
	case k == boolean && g.IntN(4) == 0:
		return "device.allowMultipleAllocations"
	case k == quantity && g.IntN(2) == 0:
		return "device.capacity[" + quote(g.one(domains...)) + "]." + g.one(amounts...)
	case k == dynamic && g.IntN(5) > 0:
		return "device.attributes[" + quote(g.one(domains...)) + "]." + g.one(ids...)
	}
	return g.literal(k)
}

// with is what make gives with a variable of that kind around.
func (g *generator) with(k kind, make func(name string) string) string {
	name := string(rune('p'+len(g.variables)%8)) + g.one("", "1")
	g.variables = append(g.variables, variable{name, k})
	out := make(name)
	g.variables = g.variables[:len(g.variables)-1]
	return out
}

func (g *generator) bind(k kind, depth int) string {
	other := kind(g.IntN(int(lastKind)))
	value := g.of(other, depth)
	return g.with(other, func(name string) string {
		return "cel.bind(" + name + ", " + value + ", " + g.of(k, depth) + ")"
	})
}

func (g *generator) boolean(depth int) string {
	switch g.IntN(30) {
	case 0, 1:
		return "(" + g.of(boolean, depth) + " && " + g.of(boolean, depth) + ")"
	case 2:
		return "(" + g.of(boolean, depth) + " || " + g.of(boolean, depth) + g.one("", " || "+g.of(boolean, depth)) + ")"
	case 3:
		return "!" + g.of(boolean, depth)
	case 4, 5:
		k := kind(g.IntN(int(lastKind)))
		return "(" + g.of(k, depth) + g.one(" == ", " != ") + g.of(k, depth) + ")"
	case 6, 7:
		k := []kind{integer, unsigned, double, text, boolean}[g.IntN(5)]
		return "(" + g.of(k, depth) + g.one(" < ", " <= ", " > ", " >= ") + g.of(k, depth) + ")"
	case 8:
		numbers := []kind{integer, unsigned, double}
		return "(" + g.of(numbers[g.IntN(3)], depth) + g.one(" < ", " <= ", " > ", " >= ") + g.of(numbers[g.IntN(3)], depth) + ")"
	case 9, 10, 11:
		k := []kind{integer, text, boolean, double, version, unsigned, integers, texts}[g.IntN(8)]
		return "(" + g.attributePath() + g.one(" == ", " != ", " == ", " < ", " >= ") + g.of(k, depth) + ")"
	case 12:
		return "has(" + g.one(g.attributePath(), g.of(mapping, depth)+".a", g.attributePath()+".x", "device."+g.one("driver", "capacity", "none")) + ")"
	case 13, 14:
		return g.of(quantity, depth) + g.one(".isGreaterThan(", ".isLessThan(") + g.of(quantity, depth) + ")"
	case 15, 16:
		return g.one(g.of(version, depth), g.attributePath()) + g.one(".isGreaterThan(", ".isLessThan(") + g.of(version, depth) + ")"
	case 17, 18:
		return g.of(text, depth) + g.one(".contains(", ".startsWith(", ".endsWith(") + g.of(text, depth) + ")"
	case 19:
		return g.one(g.of(text, depth), g.attributePath()) + ".matches(" + g.one(`"^a"`, `"H.*0"`, `"[0-9]+g"`, `"(?i)gpu$"`, `"^$"`, `r"\d"`, `"("`, `"\\bgb"`) + ")"
	case 20:
		k := []kind{integer, text}[g.IntN(2)]
		list := integers
		if k == text {
			list = texts
		}
		return "(" + g.one(g.of(k, depth), g.attributePath(), g.of(k, depth)) + " in " + g.of(list, depth) + ")"
	case 21:
		return "(" + g.of(text, depth) + " in " + g.one(g.of(mapping, depth), "device.attributes", "device.attributes["+g.domain()+"]", g.attributePath(), "device.capacity["+g.domain()+"]") + ")"
	case 22, 23:
		return g.quantifier(depth)
	case 24:
		return g.one("isQuantity(", "isSemver(", "bool(") + g.of(text, depth) + ")"
	case 25:
		return g.one(g.of(optionalInt, depth), g.of(optionalText, depth)) + ".hasValue()"
	case 26:
		return g.one(g.of(quantity, depth)+".isInteger()", g.of(integers, depth)+".isSorted()", g.attributePath()+".includes("+g.of(text, depth)+")", g.of(integers, depth)+".includes("+g.of(integer, depth)+")")
	case 27:
		return "sets." + g.one("contains(", "equivalent(", "intersects(") + g.of(integers, depth) + ", " + g.of(integers, depth) + ")"
	case 28:
		return "(type(" + g.of(kind(g.IntN(int(lastKind))), depth) + ") == " + g.one("int", "string", "bool", "list", "map", "type(1.0)", "uint", "null_type") + ")"
	default:
		return g.attributePath()
	}
}

func (g *generator) quantifier(depth int) string {
	list, item := g.one(g.of(integers, depth), g.attributePath()), integer
	switch g.IntN(5) {
	case 0:
		list, item = g.one(g.of(texts, depth), g.attributePath()), text
	case 1:
		list, item = g.one(g.of(mapping, depth), "device.attributes", "device.attributes["+g.domain()+"]"), text
	case 2:
		list, item = g.attributePath(), dynamic
	}
	if g.IntN(5) == 0 {
		first := integer
		if strings.HasPrefix(list, "{") || strings.HasPrefix(list, "device.attributes[") {
			first = text
		}
		return g.with(first, func(i string) string {
			return g.with(item, func(v string) string {
				return list + "." + g.one("all", "exists", "existsOne") + "(" + i + ", " + v + ", " + g.of(boolean, depth) + ")"
			})
		})
	}
	return g.with(item, func(name string) string {
		return list + "." + g.one("all", "exists", "exists_one", "existsOne") + "(" + name + ", " + g.of(boolean, depth) + ")"
	})
}

func (g *generator) integer(depth int) string {
	switch g.IntN(17) {
	case 0, 1, 2:
		return "(" + g.of(integer, depth) + g.one(" + ", " - ", " * ", " / ", " % ") + g.of(integer, depth) + ")"
	case 3:
		return "-" + g.of(integer, depth)
	case 4:
		return g.one(g.of(text, depth), g.of(integers, depth), g.of(mapping, depth), "device.attributes["+g.domain()+"]", g.attributePath()) + ".size()"
	case 5:
		return "size(" + g.one(g.of(texts, depth), g.of(text, depth), "device.attributes") + ")"
	case 6:
		return "int(" + g.one(g.of(text, depth), g.of(double, depth), g.of(unsigned, depth), g.of(integer, depth)) + ")"
	case 7:
		return g.of(quantity, depth) + g.one(".asInteger()", ".compareTo("+g.of(quantity, depth)+")")
	case 8:
		return "sign(" + g.of(quantity, depth) + ")"
	case 9:
		return g.one(g.of(version, depth), g.attributePath()) + g.one(".major()", ".minor()", ".patch()", ".compareTo("+g.of(version, depth)+")")
	case 10:
		return g.of(text, depth) + g.one(".indexOf(", ".lastIndexOf(") + g.of(text, depth) + g.one("", ", "+g.of(integer, 0)) + ")"
	case 11:
		return g.of(integers, depth) + g.one(".indexOf(", ".lastIndexOf(") + g.of(integer, depth) + ")"
	case 12:
		return g.one(g.of(integers, depth), g.attributePath()) + g.one(".sum()", ".min()", ".max()")
	case 13:
		return g.of(integers, depth) + "[" + g.one(g.of(integer, 0), g.of(integer, depth), "dyn(1.0)", "dyn(0u)") + "]"
	case 14:
		return g.of(mapping, depth) + g.one(".a", ".b", "["+g.of(text, depth)+"]")
	case 15:
		return g.of(optionalInt, depth) + g.one(".orValue("+g.of(integer, depth)+")", ".value()")
	default:
		return g.attributePath()
	}
}

func (g *generator) text(depth int) string {
	switch g.IntN(14) {
	case 0:
		return "(" + g.of(text, depth) + " + " + g.of(text, depth) + ")"
	case 1:
		return g.of(text, depth) + g.one(".lowerAscii()", ".upperAscii()", ".trim()")
	case 2:
		return g.of(text, depth) + ".charAt(" + g.of(integer, 0) + ")"
	case 3, 4:
		return g.of(text, depth) + ".substring(" + g.of(integer, 0) + g.one("", ", "+g.of(integer, 0)) + ")"
	case 5:
		return g.of(text, depth) + ".replace(" + g.of(text, 0) + ", " + g.of(text, 0) + g.one("", ", "+g.of(integer, 0)) + ")"
	case 6:
		return g.of(texts, depth) + ".join(" + g.one("", g.of(text, 0)) + ")"
	case 7:
		return "string(" + g.one(g.of(integer, depth), g.of(boolean, depth), g.of(text, depth), g.of(unsigned, depth)) + ")"
	case 8:
		return g.of(text, depth) + ".find(" + g.one(`"[0-9]+"`, `"[a-z]*"`, `"x"`, `"."`) + ")"
	case 9:
		return g.of(texts, depth) + "[" + g.of(integer, 0) + "]"
	case 10:
		return g.of(optionalText, depth) + g.one(".orValue("+g.of(text, depth)+")", ".value()", ".or("+g.of(optionalText, depth)+").orValue(\"\")")
	case 11:
		return g.one(g.of(texts, depth), g.attributePath()) + g.one(".min()", ".max()")
	default:
		return g.attributePath()
	}
}

func (g *generator) quantity(depth int) string {
	if g.IntN(3) == 0 {
		return g.of(quantity, depth) + g.one(".add(", ".sub(") + g.one(g.of(quantity, depth), g.of(integer, 0)) + ")"
	}
	return g.leaf(quantity)
}

func (g *generator) list(k, item kind, depth int) string {
	switch g.IntN(14) {
	case 0, 1:
		items := make([]string, g.IntN(4))
		for i := range items {
			items[i] = g.of(item, depth)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case 2:
		return "(" + g.of(k, depth) + " + " + g.of(k, depth) + ")"
	case 3:
		list := g.of(k, depth)
		return g.with(item, func(name string) string { return list + ".filter(" + name + ", " + g.of(boolean, depth) + ")" })
	case 4:
		list := g.one(g.of(integers, depth), g.of(texts, depth), g.attributePath())
		return g.with(dynamic, func(name string) string {
			return list + ".map(" + name + ", " + g.one("", g.of(boolean, depth)+", ") + g.of(item, depth) + ")"
		})
	case 5:
		return g.of(k, depth) + g.one(".sort()", ".distinct()", ".reverse()")
	case 6:
		list := g.of(k, depth)
		return g.with(item, func(name string) string { return list + ".sortBy(" + name + ", " + g.of(integer, depth) + ")" })
	case 7:
		return g.of(k, depth) + ".slice(" + g.of(integer, 0) + ", " + g.of(integer, 0) + ")"
	case 8:
		if item == integer {
			return "lists.range(" + g.one("3", g.of(integer, 0)) + ")"
		}
		return g.of(text, depth) + g.one(".split(", ".split(") + g.of(text, 0) + g.one("", ", "+g.of(integer, 0)) + ")"
	case 9:
		return "[" + g.of(k, depth) + ", " + g.of(k, depth) + "].flatten(" + g.one("", "1", "2") + ")"
	case 10:
		if item == text {
			return g.of(text, depth) + ".findAll(" + g.one(`"[0-9]"`, `"[a-z]*"`, `""`, `"\\b"`) + g.one("", ", 1", ", 0", ", -1") + ")"
		}
		return "[?" + g.of(optionalInt, depth) + ", " + g.of(integer, depth) + "]"
	case 11:
		of := optionalInt
		if item == text {
			of = optionalText
		}
		return "[" + g.of(of, depth) + ", " + g.of(of, depth) + "].unwrapOpt()"
	case 12:
		list := g.of(k, depth)
		return g.with(integer, func(i string) string {
			return g.with(item, func(v string) string {
				return list + ".transformList(" + i + ", " + v + ", " + g.one("", g.of(boolean, depth)+", ") + g.of(item, depth) + ")"
			})
		})
	default:
		return g.attributePath()
	}
}

func (g *generator) mapping(depth int) string {
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf("{%s: %s, %s: %s}", g.of(text, depth), g.of(integer, depth), g.of(text, depth), g.of(integer, depth))
	case 1:
		return `{?"a": ` + g.of(optionalInt, depth) + `, "b": ` + g.of(integer, depth) + "}"
	case 2:
		m := g.of(mapping, depth)
		return g.with(text, func(key string) string {
			return g.with(integer, func(value string) string {
				return m + ".transformMap(" + key + ", " + value + ", " + g.one("", g.of(boolean, depth)+", ") + g.of(integer, depth) + ")"
			})
		})
	default:
		list := g.of(texts, depth)
		return g.with(integer, func(i string) string {
			return g.with(text, func(v string) string {
				return list + ".transformMapEntry(" + i + ", " + v + ", {" + v + ": " + g.of(integer, depth) + "})"
			})
		})
	}
}

func (g *generator) optional(k kind, depth int) string {
	item, list := integer, integers
	if k == optionalText {
		item, list = text, texts
	}
	switch g.IntN(8) {
	case 0:
		return "optional.of(" + g.of(item, depth) + ")"
	case 1:
		return "optional.ofNonZeroValue(" + g.of(item, depth) + ")"
	case 2:
		return g.of(list, depth) + "[?" + g.of(integer, 0) + "]"
	case 3:
		return g.of(list, depth) + g.one(".first()", ".last()")
	case 4:
		return g.of(k, depth) + ".or(" + g.of(k, depth) + ")"
	case 5:
		from := g.of(k, depth)
		return g.with(item, func(name string) string {
			return from + g.one(".optMap("+name+", "+g.of(item, depth)+")", ".optFlatMap("+name+", "+g.of(k, depth)+")")
		})
	case 6:
		if item == integer {
			return g.of(mapping, depth) + g.one(".?a", ".?c", "[?"+g.of(text, depth)+"]")
		}
		fallthrough
	default:
		id := g.one(ids...)
		return "device.attributes[" + g.domain() + "]" + g.one(".?"+id, "[?"+quote(id)+"]")
	}
}

func (g *generator) dynamic(depth int) string {
	switch g.IntN(6) {
	case 0:
		return "dyn(" + g.of(kind(g.IntN(int(dynamic))), depth) + ")"
	case 1:
		return g.attributePath() + "[" + g.of(integer, 0) + "]"
	case 2:
		return "device.attributes.?" + g.one("x", "y") + ".?a.orValue(" + g.of(dynamic, depth) + ")"
	default:
		return g.attributePath()
	}
}
