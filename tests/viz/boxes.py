"""Every label of the graph's nodes fits its box, with 0.62 em a character, as wide sans-serif fonts have."""
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"
n = 0
for node in tree.parse(sys.argv[1]).iter(SVG + "g"):
    if node.get("class") != "node":
        continue
    xs = []
    for shape in list(node.iter(SVG + "polygon")) + list(node.iter(SVG + "path")):
        text = shape.get("points") or shape.get("d").replace("M", " ").replace("C", " ")
        xs += [float(pair.split(",")[0]) for pair in text.split()]
    for label in node.iter(SVG + "text"):
        width = len(label.text) * 0.62 * float(label.get("font-size"))
        middle = float(label.get("x"))
        assert min(xs) <= middle - width / 2 and middle + width / 2 <= max(xs), label.text
        n += 1
assert n > 0
print("all labels fit")
