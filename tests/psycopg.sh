# Sourced by scripts that have set `target` (cargo's target directory): sets `python` to one that has psycopg, which
# is installed into a virtual environment beside the build where it is missing.
python=python3
if ! python3 -c 'import psycopg' 2>/dev/null; then
    venv=$target/clients-venv
    if ! "$venv/bin/python" -c 'import psycopg' 2>/dev/null; then
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check 'psycopg[binary]'
    fi
    python=$venv/bin/python
fi
