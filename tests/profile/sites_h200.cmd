command -v python3 > /dev/null || { echo "no python3"; exit 77; }
python3 sites_h200.py "$TL" "$ROOT"
