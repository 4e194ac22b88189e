[ -w /dev/full ] || { echo "no /dev/full"; exit 77; }; $TL --help > /dev/full
