# Read by the other scripts: `need_tools` installs what a build needs and is missing (Debian, Ubuntu).
# Required: a C compiler, make. Optional: SQLite and Graphviz (with pkg-config), without which storing
# runs and drawing graphs is left out.

has_header() {
	echo "#include <$1>" | ${CC:-cc} -E -x c - > /dev/null 2>&1
}

# Prints the Debian packages whose contents are missing.
missing_packages() {
	command -v "${CC:-cc}" > /dev/null || echo gcc libc6-dev
	command -v make > /dev/null || echo make
	command -v pkg-config > /dev/null || echo pkg-config
	has_header sqlite3.h || echo libsqlite3-dev
	pkg-config --exists libgvc libcgraph 2> /dev/null || echo libgraphviz-dev
	[ -z "${FOR_TESTS:-}" ] || command -v python3 > /dev/null || echo python3
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

can_install() {
	command -v apt-get > /dev/null || return 1
	[ "$(id -u)" = 0 ] || { command -v sudo > /dev/null && sudo -n true 2> /dev/null; } ||
		{ command -v sudo > /dev/null && [ -t 0 ]; }
}

need_tools() {
	missing=$(missing_packages | tr '\n' ' ')
	if [ -n "$missing" ] && can_install; then
		echo "installing: $missing"
		as_root apt-get update -qq > /dev/null || true
		as_root env DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends $missing > /dev/null ||
			echo "apt-get could not install all of: $missing"
		missing=$(missing_packages | tr '\n' ' ')
	fi
	case " $missing" in
	*" gcc "* | *" make "*)
		echo "cannot build without a C compiler and make; install: $missing" >&2
		exit 3
		;;
	"  " | " ") ;;
	*) echo "building without: $missing(storing runs needs SQLite, graphs need Graphviz)" ;;
	esac
}

# Says what a machine without CUDA or a GPU leaves out.
say_what_is_skipped() {
	if ! ls /usr/local/cuda*/lib64/libnvrtc.so* > /dev/null 2>&1 && ! ldconfig -p 2> /dev/null | grep -q libnvrtc; then
		echo "no CUDA toolkit: compiling the generated CUDA is skipped (NVRTC from a Python environment's"
		echo "  nvidia-cuda-nvrtc wheel is found too; see 'tilelayout doctor')"
	fi
	[ -e /dev/nvidiactl ] ||
		echo "no NVIDIA GPU: run --gpu, bench and profile are skipped; the simulator checks the numbers instead"
}
