#!/bin/bash
# Start the action, or say what to do on a node that can't run it. ytf oozie package has written this file.
# Stdout is for the output properties alone.
python=$1
program=("$python")
if [ -e ytf.pex ]; then
    export PEX_ROOT="$PWD/.pex"  # the home directory of the launcher is not writable
    program+=(ytf.pex)
fi
fail() {
    echo "$*" >&2
    printf '\nstatus=FAILED\nreason=SPEC_INVALID\nmessage=%s\n' "$*" >externalChildIDs  # see packed_job.py: CHILD_IDS
    exit 2
}
if ! command -v "$python" >/dev/null; then
    fail "$(hostname) has no interpreter '$python'; pack the application again with --python and a path that each node" \
        "has, such as --python /opt/tf/bin/python"
fi
if ! "${program[@]}" -c 'import tf_yarn_ops.oozie.action' >&2; then
    fail "'$python' on $(hostname) can't run tf_yarn_ops; pack the application again with --python and an interpreter" \
        "that has the package on each node, such as --python /opt/tf/bin/python, or with --pex, so that the package" \
        "travels with the action (then --python needs the Python version of the machine that packs)"
fi
exec "${program[@]}" -m tf_yarn_ops.oozie.action
