command -v python3 > /dev/null || { echo "no python3"; exit 77; }
$TL analyze ../cli/gemm.tl --no-db --out $TMP/d > /dev/null && python3 -c "
import glob, sys, xml.dom.minidom
for f in sorted(glob.glob(sys.argv[1] + \"/*.svg\")):
    d = xml.dom.minidom.parse(f).documentElement
    assert d.tagName == \"svg\" and not d.getElementsByTagName(\"script\"), f
    n = len(d.getElementsByTagName(\"title\"))
    print(f[len(sys.argv[1]) + 1:], n > 5 if \"graph\" in f else n)
" $TMP/d
