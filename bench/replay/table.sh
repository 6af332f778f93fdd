#!/usr/bin/env bash
# Replays one workload under every built-in policy and prints a line each: the openb default trace where the
# data is there, else the generated workload.
#
#   table.sh BERTH_REPLAY DATA_FOLDER
set -euo pipefail
replay=$1
data=$2
openb=$data/openb
if [[ -d $openb ]]; then
  args=(--nodes "$openb/openb_node_list_gpu_node.csv" --tasks "$openb/openb_pod_list_default.csv.gz"
        --order "$openb/orders/default.txt.gz")
else
  echo "no $openb (set BERTH_DATA): the generated workload instead"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  "$replay" generate --nodes "$folder/nodes.csv" --tasks "$folder/tasks.csv"
  args=(--nodes "$folder/nodes.csv" --tasks "$folder/tasks.csv")
fi
for policy in random dot-product gpu-clustering gpu-packing best-fit first-fit fragmentation-gradient; do
  "$replay" run "${args[@]}" --seed 42 --policy "$policy"
done
