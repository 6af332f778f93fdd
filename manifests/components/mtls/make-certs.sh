#!/usr/bin/env bash
# Makes what mutual TLS between kube-scheduler and Berth needs: a CA that is used for nothing else, a server certificate
# for Berth, a client certificate for the scheduler. Needs openssl 1.1.1 or newer; --apply needs kubectl.
#
#   make-certs.sh [--dir DIR] [--days N] [--san SAN]... [--new-ca | --drop-old-ca] [--apply]
#
#   --dir DIR       where the files are kept; default: certs/ beside this script. Keep it secret, and keep it: the CA's
#                   key is in it. Files: ca.crt (all CAs that are trusted), ca.key, {server,client}.{crt,key}
#   --days N        how long the two certificates are good for; default 365
#   --san SAN       one more name of the server, as openssl writes it: DNS:name or IP:address
#   --new-ca        make a new CA and trust it beside the old one; certificates stay those of the old CA
#   --drop-old-ca   trust the newest CA alone
#   --apply         write the Secrets berth-server-tls and berth-client-tls into the namespace berth-system
#
# The CA is made once and is good for ten years. Each run without --new-ca and --drop-old-ca issues both certificates
# anew. What to restart after a run is in docs/tls.md.
set -euo pipefail

usage() { sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }
fail() { echo "make-certs.sh: $*" >&2; exit 1; }

dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/certs
days=365
namespace=berth-system
names=DNS:berth.$namespace.svc,DNS:berth.$namespace.svc.cluster.local,DNS:berth.$namespace,DNS:berth
action=issue
apply=
while (( $# > 0 )); do
  case $1 in
    --dir) dir=${2:?--dir: want a folder}; shift ;;
    --days) days=${2:?--days: want a number}; shift ;;
    --san) names+=,${2:?--san: want DNS:name or IP:address}; shift ;;
    --new-ca) action=new-ca ;;
    --drop-old-ca) action=drop-old-ca ;;
    --apply) apply=yes ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
[[ $days =~ ^[1-9][0-9]*$ ]] || fail "--days: want a number of days, got \"$days\""

umask 077
mkdir -p "$dir"
work=$(mktemp -d "$dir/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT

new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }

# Files are made beside the old ones and moved over them: a run that fails changes nothing.
keep() { local file; for file in "$@"; do mv -f "$work/$file" "$dir/$file"; done; }

make_ca() {
  new_key "$work/ca.key"
  # The year is in the name so that two CAs in one file can be told apart.
  openssl req -x509 -new -sha256 -key "$work/ca.key" -days 3650 -out "$work/ca.crt" \
    -subj "/CN=berth-ca-$(date -u +%Y%m%d%H%M%S)" -config /dev/stdin <<'CA'
[req]
distinguished_name = name
x509_extensions = ca
prompt = no
[name]
[ca]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
CA
}

# certificate NAME SUBJECT USAGE [SAN]: NAME.key and NAME.crt, signed by the CA in $dir.
certificate() {
  new_key "$work/$1.key"
  openssl req -new -sha256 -key "$work/$1.key" -subj "$2" -out "$work/$1.csr"
  {
    echo "basicConstraints = critical, CA:FALSE"
    echo "keyUsage = critical, digitalSignature"
    echo "extendedKeyUsage = $3"
    echo "subjectKeyIdentifier = hash"
    echo "authorityKeyIdentifier = keyid"
    if [[ -n ${4:-} ]]; then echo "subjectAltName = $4"; fi
  } >"$work/$1.ext"
  openssl x509 -req -sha256 -in "$work/$1.csr" -CA "$signer" -CAkey "$dir/ca.key" -days "$days" \
    -set_serial "0x$(openssl rand -hex 16)" -extfile "$work/$1.ext" -out "$work/$1.crt" 2>/dev/null \
    || fail "could not sign the certificate of the $1 (--san: want DNS:name or IP:address)"
}

# The newest CA is the first one in ca.crt, and the one that ca.key belongs to.
newest_ca() { openssl x509 -in "$dir/ca.crt"; }

if [[ ! -e $dir/ca.key && ! -e $dir/ca.crt ]]; then
  [[ $action == issue ]] || fail "there is no CA in $dir yet"
  make_ca
  keep ca.key ca.crt
fi
[[ -s $dir/ca.key && -s $dir/ca.crt ]] || fail "want ca.key and ca.crt in $dir, found only one of them"

case $action in
  issue)
    signer=$work/signer.crt
    newest_ca >"$signer"
    certificate server /CN=berth serverAuth "$names"
    certificate client /CN=kube-scheduler clientAuth
    openssl verify -CAfile "$dir/ca.crt" "$work/server.crt" "$work/client.crt" >/dev/null
    keep server.key server.crt client.key client.crt ;;
  new-ca)
    make_ca
    cat "$dir/ca.crt" >>"$work/ca.crt"
    keep ca.key ca.crt ;;
  drop-old-ca)
    newest_ca >"$work/ca.crt"
    for name in server client; do
      openssl verify -CAfile "$work/ca.crt" "$dir/$name.crt" >/dev/null 2>&1 \
        || fail "$name.crt is still one of an old CA: run without --new-ca and --drop-old-ca first"
    done
    keep ca.crt ;;
esac

# secret NAME: from $dir/{server,client}.{crt,key}; written over what is there, so that files are swapped at once.
secret() {
  kubectl create secret generic "berth-$1-tls" --namespace "$namespace" --type kubernetes.io/tls \
    --from-file "tls.crt=$dir/$1.crt" --from-file "tls.key=$dir/$1.key" --from-file "ca.crt=$dir/ca.crt" \
    --dry-run=client -o yaml | kubectl apply --server-side --force-conflicts -f -
}
if [[ -n $apply ]]; then
  secret server
  secret client
fi
for name in server client; do
  [[ -e $dir/$name.crt ]] || continue
  echo "$dir/$name.crt: good until $(openssl x509 -in "$dir/$name.crt" -noout -enddate | cut -d= -f2)"
done
echo "$dir/ca.crt: $(grep -c 'BEGIN CERTIFICATE' "$dir/ca.crt") CA(s) trusted"
