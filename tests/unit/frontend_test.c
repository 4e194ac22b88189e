/*
 * Kernel files to tile programs. Each case is a piece of a kernel and the lines of the printed
 * program, or the code and place of the first diagnostic; what is wanted follows the language's
 * description (docs/language.md).
 */
#include "tests/unit/check.h"
#include "tests/unit/kernel_text.h"

/* Settings of one run: "M=8 dtype=float16", "A=8x8:float16", the kernel's name. */
struct run_options {
	const char *sets, *tensors, *kernel;
};

/* "NAME=VALUE NAME=VALUE" as --set or --tensor would give them. */
static void add_settings(struct kernel_text *kt, const char *text, struct frontend_options *options,
                         bool is_tensor)
{
	char *copy = arena_strndup(kt->arena, text, strlen(text)), *save = NULL;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');
		struct frontend_set set = { .name = word };

		*value = 0;
		set.value = value + 1;
		if (is_tensor)
			vec_push(kt->arena, &options->tensors, set);
		else
			vec_push(kt->arena, &options->sets, set);
	}
}

/* The kernel's program; NULL with diagnostics. */
static struct tile_program *run(struct kernel_text *kt, const struct run_options *run_options)
{
	struct frontend_options options = { .config = -1, .kernel = run_options->kernel };
	struct frontend_result result;

	add_settings(kt, run_options->sets ? run_options->sets : "", &options, false);
	add_settings(kt, run_options->tensors ? run_options->tensors : "", &options, true);
	if (!frontend_run(&kt->cx, kt->pool, kt->file, &options, &result))
		return NULL;
	return frontend_require(&kt->cx, &options, &result);
}

/* The printed program, or the diagnostics. */
static const char *outcome(struct kernel_text *kt, const struct run_options *options)
{
	struct tile_program *program = run(kt, options);
	struct buf out = { 0 };
	const char *text;

	if (!program)
		return kernel_text_diags(kt);
	tile_print(&out, program);
	text = arena_strndup(kt->arena, buf_cstr(&out), out.n);
	buf_free(&out);
	return text;
}

/* A kernel around some statements: C (64, 64) float32 global, S (8, 8) float16 shared, F (8, 8)
 * float32 fragment, v an int32 variable. */
static const char *around(struct kernel_text *kt, const char *host, const char *body)
{
	struct buf out = { 0 };
	const char *text;

	buf_text(&out, "import tilelang.language as T\nimport torch\nimport math\n");
	buf_text(&out, host);
	buf_text(&out, "\n@T.prim_func\ndef k(C: T.Tensor((64, 64), 'float32'), n: T.int32):\n"
	               "    with T.Kernel(8, 8, threads=32) as (bx, by):\n"
	               "        S = T.alloc_shared((8, 8), 'float16')\n"
	               "        F = T.alloc_fragment((8, 8), T.float32)\n"
	               "        v = T.alloc_var('int32')\n");
	for (const char *line = body; *line;) {
		size_t n = strcspn(line, "\n");

		buf_text(&out, "        ");
		buf_add(&out, line, n);
		buf_char(&out, '\n');
		line += n + (line[n] == '\n');
	}
	text = arena_strndup(kt->arena, out.p, out.n);
	buf_free(&out);
	return text;
}

/* What stands before the kernel, its statements, and what they become. */
struct body_case {
	const char *host, *body;
	const char *wanted; /* lines of the program behind the declarations, or the first diagnostic */
};

/* On a mismatch shows the body, what came, and what was wanted. */
static void check_body(struct check *check, const struct body_case *c)
{
	static const char behind[] = "\t\tv: var int32[]\n";
	static const struct run_options no_options = { 0 };
	struct kernel_text kt, text_holder;
	const char *text, *got, *body;

	kernel_text_open(&text_holder, "", 0);
	text = around(&text_holder, c->host, c->body);
	kernel_text_open(&kt, text, strlen(text));
	got = outcome(&kt, &no_options);
	body = strstr(got, behind);
	if (kt.cx.diags.n_errors)
		got = kernel_text_first(&kt);
	else if (body)
		got = body + sizeof(behind) - 1;
	if (!CHECK(check, strcmp(got, c->wanted) == 0))
		printf("--- body\n%s\n--- got\n%s--- wanted\n%s%s---\n", c->body, got, c->wanted,
		       kernel_text_diags(&kt));
	kernel_text_close(&kt);
	kernel_text_close(&text_holder);
}

/* Statements that become tile program. */
static void test_device(struct check *check)
{
	static const struct body_case cases[] = {
		{ "", "T.copy(C[by * 8, bx * 8], S)", "\t\tcopy(src=C[by*8, bx*8; 8, 8], dst=S)\n" },
		{ "", "T.copy(S, C[by * 8:by * 8 + 8, 0:8])", "\t\tcopy(src=S, dst=C[by*8, 0; 8, 8])\n" },
		{ "", "T.copy(C[bx, 0:8], F[bx % 8, :], coalesced_width=4)",
		  "\t\tcopy(src=C[bx, 0; 1, 8], dst=F[bx, 0; 1, 8], coalesced_width=4)\n" },
		{ "", "T.copy(C[0, 0], F[0, 0])", "\t\tF[0, 0] = C[0, 0]\n" },
		{ "", "T.fill(S, -T.infinity('float16'))", "\t\tfill(dst=S, value=float16(\"-inf\"))\n" },
		{ "", "T.gemm(S, S, F, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)",
		  "\t\tgemm(a=S, b=S, c=F, transpose_b=1, policy=FullCol)\n" },
		{ "", "T.gemm(S, S, F, clear_accum=bx == 0)",
		  "\t\tgemm(a=S, b=S, c=F, clear_accum=bx == 0)\n" },
		{ "", "R = T.alloc_fragment((8,), 'float32')\nT.reduce_max(F, R, dim=-1, clear=False)",
		  "\t\tR: fragment float32[8]\n\t\treduce(src=F, dst=R, kind=max, dim=1)\n" },
		{ "", "for i, j in T.Parallel(8, 8):\n    F[i, j] += S[i, j]",
		  "\t\tfor i, j in parallel(8, 8):\n\t\t\tF[i, j] = F[i, j] + float32(S[i, j])\n" },
		{ "", "for i in T.Parallel(8):\n    F[i, 0] = T.if_then_else(i < n, F[i, 0] * 2, 1.5)",
		  "\t\tfor i in parallel(8):\n\t\t\tF[i, 0] = select(i < n, F[i, 0]*2.0f32, 1.5f32)\n" },
		{ "", "for i in T.Parallel(8):\n    F[i, 0] = 1 if i < 4 else F[i, 1]",
		  "\t\tfor i in parallel(8):\n\t\t\tF[i, 0] = select(i < 4, 1.0f32, F[i, 1])\n" },
		{ "", "for i in range(2, 8, 3):\n    v = i",
		  "\t\tfor i in serial(2):\n\t\t\tv[] = i*3 + 2\n" },
		{ "", "for i in T.serial(n):\n    v += i",
		  "\t\tfor i in serial(n):\n\t\t\tv[] = i + v[]\n" },
		{ "", "for i in T.unroll(4):\n    v = 3 - i",
		  "\t\tfor i in unroll(4):\n\t\t\tv[] = 3 - i\n" },
		{ "", "for i in T.Pipelined(2, num_stages=2):\n    T.copy(C[0, i * 8], S)",
		  "\t\tfor i in pipelined(2, num_stages=2):\n\t\t\tcopy(src=C[0, i*8; 8, 8], dst=S)\n" },
		{ "", "if bx == 0:\n    T.clear(F)\nelif by == 0:\n    T.sync_threads()\nelse:\n    v = 1",
		  "\t\tif bx == 0:\n\t\t\tfill(dst=F, value=0.0f32)\n\t\telse:\n\t\t\tif by == "
		  "0:\n\t\t\t\tsync()\n"
		  "\t\t\telse:\n\t\t\t\tv[] = 1\n" },
		{ "", "if 1 > 2:\n    T.clear(F)\nelif not False:\n    T.clear(S)",
		  "\t\tfill(dst=S, value=0.0f16)\n" },
		{ "", "while v < 3 and bx > 0:\n    v = v + 1",
		  "\t\twhile v[] < 3 and bx >= 1:\n\t\t\tv[] = v[] + 1\n" },
		{ "", "x = C[0, 0]\nC[0, 0] = x + x",
		  "\t\tlet x: float32 = C[0, 0]\n\t\tC[0, 0] = x + x\n" },
		{ "", "x = bx * 8\ny, z = x + 1, x\nx, y = y, x\nC[x, y] = z",
		  "\t\tC[bx*8 + 1, bx*8] = float32(bx*8)\n" },
		{ "", "C[-1, 0] = T.max(n, 0) // 2 % 3", "\t\tC[63, 0] = float32((max(n, 0) // 2) % 3)\n" },
		{ "", "C[0, 0] = T.exp2(C[0, 0]) + T.rsqrt(2.0) + T.cast(n, 'float16')",
		  "\t\tC[0, 0] = exp2(C[0, 0]) + rsqrt(2.0f32) + float32(float16(n))\n" },
		{ "", "C[0, 0] = T.float16(1) + S[0, 0] * 0.5",
		  "\t\tC[0, 0] = float32(1.0f16 + S[0, 0]*0.5f16)\n" },
		{ "", "C[0, 0] = n + 0.5", "\t\tC[0, 0] = float32(n) + 0.5f32\n" },
		{ "", "C[0, 0] = not (bx < 4 or 1 <= by < n)",
		  "\t\tC[0, 0] = float32(not (bx < 4 or by >= 1 and by < n))\n" },
		{ "def twice(x):\n    return x + x", "C[0, 0] = twice(C[0, 1])",
		  "\t\tC[0, 0] = C[0, 1] + C[0, 1]\n" },
		{ "@T.macro\ndef put(b, x):\n    for i in range(2):\n        b[i, 0] = x",
		  "put(F, 2.0)\nput(C, 1)",
		  "\t\tfor i in serial(2):\n\t\t\tF[i, 0] = 2.0f32\n\t\tfor i_1 in "
		  "serial(2):\n\t\t\tC[i_1, 0] = 1.0f32\n" },
		{ "", "[T.clear(b) for b in (F, S)]",
		  "\t\tfill(dst=F, value=0.0f32)\n\t\tfill(dst=S, value=0.0f16)\n" },
		{ "", "for i in T.Parallel(8):\n    for j in T.Parallel(8):\n        F[i, j] = 1",
		  "\t\tfor i, j in parallel(8, 8):\n\t\t\tF[i, j] = 1.0f32\n" },
		{ "", "C[bx, 0:4] = 2.0",
		  "\t\tC[bx, call(int32x4, ramp, 0, 1)] = call(float32x4, broadcast, 2.0f32)\n" },
		{ "", "C[bx, 0:4] = C[by, 4:8]",
		  "\t\tC[bx, call(int32x4, ramp, 0, 1)] = C[by, call(int32x4, ramp, 4, 1)]\n" },
		{ "f = getattr(T, 'exp')", "C[0, 0] = f(C[0, 1])", "\t\tC[0, 0] = exp(C[0, 1])\n" },
		{ "",
		  "tx = T.thread_binding(0, 32, thread='threadIdx.x')\nC[0, 0] = T.cast(tx + 1, 'float32')",
		  "\t\tC[0, 0] = float32(tx + 1)\n" },
		{ "", "T.use_swizzle(4, order='row', enable=False)\nT.print(F)\nassert n > 0",
		  "\t\tpass\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_body(check, &cases[i]);
}

/* The host part: the value of an expression comes out as what is stored in v. */
static void test_host(struct check *check)
{
	static const struct {
		const char *host, *expression, *value;
	} cases[] = {
		{ "", "7 // 2 * 10 + -7 // 2 + 7 % -3 + 2 ** 5 + (1 << 4) + (5 ^ 3)", "78" },
		{ "", "int(7 / 2 * 2) + int('0x10', 16) + round(2.5) + abs(-3) + int(float('1.5'))", "29" },
		{ "", "len('h\xc3\xa9llo') + len([1, 2]) + len({1: 2}) + len(range(0, 10, 3))", "12" },
		{ "", "sum(x * y for x in range(4) if x % 2 for y in (1, 10))", "44" },
		{ "", "max([3, 9, 4]) * 10 + int(min(2, 1.5, 7) * 2)", "93" },
		{ "",
		  "sorted([3, 1, 2], reverse=True)[0] + list(reversed((1, 2, 5)))[0] + [4, 5, 6][-1] + [1, "
		  "2, 3, 4][1:3][1]",
		  "17" },
		{ "",
		  "{'a': 1, 'b': 2}['b'] + {**{'c': 5}}.get('c') + dict(x=3)['x'] + {k: v for k, v in [(1, "
		  "4)]}[1]",
		  "14" },
		{ "",
		  "'a,b,,c'.split(',').index('c') + 'xay'.find('a') + ('-'.join(['a', 'b']) == 'a-b') + "
		  "'float16'.endswith('16')",
		  "6" },
		{ "", "1 if f'{3:02d}{\"x\"!r}{1.5:.2f}' == \"03'x'1.50\" else 0", "1" },
		{ "", "(lambda a, b=2, *c, d=4, **e: a + b + len(c) + d + e['f'])(1, 2, 3, 3, f=10)",
		  "19" },
		{ "",
		  "T.ceildiv(100, 32) + math.ceil(1.5) + int(math.log2(8)) + int(math.sqrt(16)) + "
		  "T.float16.bits",
		  "29" },
		{ "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)", "f(15)", "610" },
		{ "def f():\n    x = 0\n    def g():\n        nonlocal x\n        x += 2\n    g()\n    "
		  "g()\n    return x",
		  "f()", "4" },
		{ "def f():\n    t = 0\n    for i in range(10):\n        if i == 2:\n            "
		  "continue\n        if i == 5:\n            break\n"
		  "        t += i\n    else:\n        t = 100\n    while t < 20:\n        t *= 2\n    "
		  "return t",
		  "f()", "32" },
		{ "a, (b, *c), d = 1, [2, 3, 4], 5\nx = y = [0]\ny.append(7)\nx += [8]",
		  "a + b + len(c) + d + x[1] + len(y)", "20" },
		{ "d = {}\nd['k'] = [1]\nd['k'].extend((2, 3))\nd.setdefault('m', 4)",
		  "sum(d['k']) + d.pop('m') + len(d)", "11" },
		{ "try:\n    import nothing\n    x = 5\nexcept ImportError:\n    x = 6", "x", "5" },
		{ "class A:\n    def f(self):\n        pass\nq = A()\nx = 3 if isinstance(2, (int, str)) "
		  "else 4",
		  "x", "3" },
		{ "g = 1\ndef f():\n    global g\n    g = 9\nf()", "g + (h := 2) + h", "13" },
		{ "from itertools import product as p", "[a * 10 + b for a, b in p((1, 2), (3, 4))][2]",
		  "23" },
		{ "", "(3 if 2 in (1, 2) and 5 not in [4] and 'x' is not None and not None else 0) or 1",
		  "3" },
		{ "x = 0\nfor i in range(40):\n    x += i\ny = []\nfor i in range(40):\n    y.append(i)\n"
		  "for i in range(40):\n    for j in range(4):\n        z = torch.rand(i)[j]",
		  "x + len(y)", "820" },
		{ "a = torch.rand(4, 8).cuda().half() * 2", "a.shape[0] + a.shape[1]", "12" },
		{ "", "len('\\d') + len('\\x00')", "3" },
		{ "import tilelang\nk = tilelang.PassConfigKey.TL_DISABLE_WGMMA",
		  "k.value == 'tl.disable_wgmma'", "1" },
		{ "",
		  "any([0, 1]) + all(()) + sum(map(lambda x: x + 1, [1, 2])) + [i * j for i, j in zip((1, "
		  "2), (3, 4))][1]",
		  "15" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf body = { 0 }, wanted = { 0 };

		buf_printf(&body, "v = %s", cases[i].expression);
		buf_printf(&wanted, "\t\tv[] = %s\n", cases[i].value);
		check_body(check, &(struct body_case){ cases[i].host, body.p, wanted.p });
		buf_free(&body);
		buf_free(&wanted);
	}
}

/* Mistakes: the code and the place of the first message. */
static void test_errors(struct check *check)
{
	static const struct body_case cases[] = {
		{ "", "T.copy(C[0, 0], Q)", "E0201 11:25" },
		{ "", "T.cpoy(C[0, 0], S)", "E0203 11:11" },
		{ "", "T.clc_get_first_ctaid_x(1)", "E0204 11:11" },
		{ "", "T.copy(C, S)", "E0301 11:19" },
		{ "", "T.copy(C[0:4, 0:8], S)", "E0301 11:29" },
		{ "", "T.copy(C[0], S)", "E0303 11:18" },
		{ "", "T.copy(3, S)", "E0202 11:16" },
		{ "", "T.copy(S)", "E0210 11:9" },
		{ "", "T.copy(S, F, 1)", "E0210 11:22" },
		{ "", "T.copy(S, F, fast=1)", "E0210 11:22" },
		{ "", "G = T.alloc_shared((8, 16), 'float16')\nT.gemm(G, S, F)", "E0302 12:19" },
		{ "", "T.gemm(S, S, S)", "E0304 11:22" },
		{ "", "T.gemm(C[0:8, 0:8], S, F)", "E0304 11:16" },
		{ "", "G = T.alloc_shared((8, 8), 'float32')\nT.gemm(G, S, F)", "E0305 12:19" },
		{ "", "T.reduce_sum(F, S, dim=1)", "E0307 11:25" },
		{ "", "T.reduce_sum(F, S, dim=2)", "E0307 11:32" },
		{ "", "S[8, 0] = 1", "E0306 11:9" },
		{ "", "T.copy(S[4:12, :], F)", "E0306 11:16" },
		{ "", "T.copy(C[0:n, :], S)", "E0308 11:18" },
		{ "", "A = T.alloc_shared((n, 8), 'float16')", "E0308 11:13" },
		{ "", "A = T.alloc_shared((0, 8), 'float16')", "E0311 11:28" },
		{ "", "A = T.alloc_shared((8, 8), 'float17')", "E0202 11:36" },
		{ "", "for i in T.Parallel(8):\n    T.clear(S)", "E0312 12:13" },
		{ "",
		  "for i in T.Parallel(8):\n    F[i, 0] = 0\n    for j in T.Parallel(8):\n        F[i, j] "
		  "= 1",
		  "E0312 13:13" },
		{ "", "for i, j in T.Parallel(8):\n    pass", "E0216 11:13" },
		{ "", "for i in T.serial(8):\n    x = F[i, 0]\nC[0, 0] = x", "E0218 13:19" },
		{ "", "if bx > 0:\n    x = by\nC[0, 0] = x", "E0218 13:19" },
		{ "x = torch.cuda.device_count()", "for i in range(x):\n    v = i", "E0205 11:18" },
		{ "x = torch.cuda.device_count()", "if x > 2:\n    v = 1", "E0205 11:12" },
		{ "e = torch.emitter()", "e.mma(S, F)", "E0217 11:9" },
		{ "e = torch.emitter()", "x = e.load(S)", "E0217 11:13" },
		{ "e = torch.emitter()", "if bx > 0:\n    e.wait()", "E0217 12:13" },
		{ "", "v = 1 // 0", "E0214 11:13" },
		{ "", "v = 2 ** 10 ** 9", "E0214 11:13" },
		{ "", "v = 1 << 64", "E0214 11:13" },
		{ "", "v = [1, 2][2]", "E0215 11:20" },
		{ "", "v = {'a': 1}['b']", "E0215 11:22" },
		{ "", "a, b = 1, 2, 3", "E0216 11:9" },
		{ "", "v = 'a' + 1", "E0202 11:13" },
		{ "", "v = n / 2", "E0202 11:13" },
		{ "", "v = max(n, 2)", "E0202 11:13" },
		{ "", "assert 1 > 2, 'no'", "E0211 11:16" },
		{ "", "raise ValueError('no')", "E0211 11:9" },
		{ "", "with T.Kernel(1):\n    pass", "E0213 11:14" },
		{ "def f(a):\n    return a", "v = f()", "E0210 12:13" },
		{ "def f(a):\n    return f(a)", "v = f(1)", "E0212 5:12" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_body(check, &cases[i]);
}

/* The example that ops.def gives for each operation makes that operation. */
static void test_op_examples(struct check *check)
{
	static const char before[] =
		"import tilelang.language as T\n@T.prim_func\n"
		"def k(A: T.Tensor((1024, 1024), 'float16'), "
		"data: T.Tensor((1, 8, 8, 32), 'float16')):\n"
		"    with T.Kernel(8, 8) as (bx, by):\n"
		"        A_shared = T.alloc_shared((128, 64), 'float16')\n"
		"        B_shared = T.alloc_shared((64, 128), 'float16')\n"
		"        C_local = T.alloc_fragment((128, 128), 'float32')\n"
		"        square = T.alloc_fragment((128, 128), 'float32')\n"
		"        total = T.alloc_fragment((128,), 'float32')\n"
		"        A_turned = T.alloc_shared((64, 128), 'float16')\n"
		"        E_shared = T.alloc_shared((128, 16), 'uint8')\n"
		"        g_shared = T.alloc_shared((64,), 'float32')\n"
		"        data_shared = T.alloc_shared((32, 32), 'float16')\n"
		"        full = T.alloc_barrier(128)\n"
		"        B_dense = T.alloc_shared((128, 128), 'float16')\n"
		"        sums = T.alloc_reducer((128,), 'float32', 'sum')\n"
		"        for ko in T.serial(16):\n            k = ko\n            ";

	for (int i = 0; i < N_OP_KINDS; i++) {
		static const struct run_options no_options = { 0 };
		const struct op_info *info = op_info((enum op_kind)i);
		struct kernel_text kt;
		struct buf text = { 0 }, wanted = { 0 };
		const char *got;

		buf_printf(&text, "%s%s\n", before, info->example);
		buf_printf(&wanted, "\t\t\t%s(", info->id);
		kernel_text_open(&kt, text.p, text.n);
		got = outcome(&kt, &no_options);
		if (!CHECK(check, strstr(got, wanted.p) != NULL))
			printf("--- got\n%s", got);
		kernel_text_close(&kt);
		buf_free(&text);
		buf_free(&wanted);
	}
}

/* Where parameters come from: --set, then calls, then defaults. */
static void test_parameters(struct check *check)
{
	static const char factory[] = "import tilelang, torch\nimport tilelang.language as T\n"
								  "def outer(B):\n"
								  "    @tilelang.jit(out_idx=-1)\n"
								  "    def make(M, N=16, *, dtype='float16', f=None):\n"
								  "        @T.prim_func\n"
								  "        def main(A: T.Tensor((M, N), dtype)):\n"
								  "            with T.Kernel(T.ceildiv(M, B), threads=B) as bx:\n"
								  "                A[bx, 0] = 1\n"
								  "        return main\n"
								  "    return make\n";
	static const struct {
		const char *tail, *sets, *wanted; /* lines of the program, or the first diagnostic */
	} cases[] = {
		{ "", "B=32 M=64",
		  "B = 32 from set\n\tgiven M = 64 from set\n\tgiven N = 16 from default\n"
		  "\tgiven dtype = \"float16\" from default\n\tgiven f = null from default\n"
		  "\tparam A: float16[64, 16]\n\tlaunch bx: 2," },
		{ "", "B=32", "E0206 7:13" },
		{ "k = outer(64)(128, dtype=torch.bfloat16)\n", "",
		  "B = 64 from call\n\tgiven M = 128 from call\n\tgiven N = 16 from default\n\tgiven dtype "
		  "= \"bfloat16\" from call" },
		{ "k = outer(64)(128)\nk2 = outer(32)(256)\n", "N=8",
		  "B = 64 from call\n\tgiven M = 128 from call\n\tgiven N = 8 from set" },
		{ "def main():\n    mk = outer(64)\n    k = mk(M=256)\n    "
		  "torch.testing.assert_close(k(torch.randn(4)), 0)\n"
		  "if __name__ == '__main__':\n    main()\n",
		  "dtype=T.float32 f=[1,'x']",
		  "B = 64 from call\n\tgiven M = 256 from call\n\tgiven N = 16 from default\n\tgiven dtype "
		  "= \"float32\" from set\n"
		  "\tgiven f = [1, \"x\"] from set\n\tparam A: float32[256, 16]" },
		{ "import argparse\nargs = argparse.ArgumentParser().parse_args()\nk = outer(32)(args.m, "
		  "args.n)\n",
		  "", "E0206 7:13" },
		{ "import argparse\nargs = argparse.ArgumentParser().parse_args()\nk = outer(32)(args.m, "
		  "args.n)\n",
		  "M=64", "B = 32 from call\n\tgiven M = 64 from set\n\tgiven N = 16 from default" },
		{ "import argparse\np = argparse.ArgumentParser(description='x')\np.add_argument('-m', "
		  "'--my-m', type=int, "
		  "default=96)\np.add_argument('--tune', action='store_true')\np.add_argument('--n', "
		  "dest='k')\n"
		  "args = p.parse_args()\nif args.tune or args.k:\n    k = outer(64)(1)\nelse:\n    k = "
		  "outer(32)(args.my_m)\n",
		  "", "B = 32 from call\n\tgiven M = 96 from call" },
		{ "import argparse\np = argparse.ArgumentParser()\np.add_argument('m', type=int)\n"
		  "k = outer(32)(p.parse_args().m)\n",
		  "", "E0206 7:13" },
		{ "", "B=32 M=64 f=T.exp", "f = \"exp\" from set" },
		{ "", "B=32 M=64 f=T.GemmWarpPolicy.FullRow", "f = \"FullRow\" from set" },
		{ "", "B=32 M=64 dtype=custom[tfloat32]", "dtype = \"tfloat32\" from set" },
		{ "k = outer(64)(128, __return_kernel=True)\n", "", "M = 128 from call" },
		{ "", "B=32 M=64 MM=3", "E0209 0:0" },
		{ "", "B=32 M=64 N=(1", "E0209 1:1" },
		{ "", "B=32 M=x", "E0202 7:30" },
		{ "", "B=2048 M=64", "E0309 8:52" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct run_options options = { .sets = cases[i].sets };
		struct buf text = { 0 };
		struct kernel_text kt;
		const char *got;

		buf_printf(&text, "%s%s", factory, cases[i].tail);
		kernel_text_open(&kt, text.p, text.n);
		got = outcome(&kt, &options);
		if (kt.cx.diags.n_errors)
			CHECK_TEXT(check, kernel_text_first(&kt), cases[i].wanted);
		else if (!CHECK(check, strstr(got, cases[i].wanted) != NULL))
			printf("--- got\n%s--- wanted\n%s\n", got, cases[i].wanted);
		kernel_text_close(&kt);
		buf_free(&text);
	}
}

/* Choosing among kernels. */
static void test_choice(struct check *check)
{
	static const char text[] = "import tilelang.language as T\n"
							   "def f(n=1):\n"
							   "    @T.prim_func\n    def a(A: T.Tensor((n,), 'float32')):\n       "
							   " with T.Kernel(1) as b:\n            A[0] = 1\n"
							   "    @T.prim_func\n    def main(A: T.Tensor((n,), 'float32')):\n    "
							   "    with T.Kernel(2) as b:\n            A[0] = 1\n"
							   "    return main\n"
							   "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    with "
							   "T.Kernel(4) as b:\n        A[0] = 1\n";
	static const struct {
		const char *kernel, *wanted;
	} cases[] = {
		{ NULL, "E0208 4:9" },         { "a", "launch b: 1," }, { "f", "launch b: 2," },
		{ "f.main", "launch b: 2," },  { "main", "E0208 8:9" }, { "main@13", "launch b: 4," },
		{ "main@12", "launch b: 4," }, { "g", "E0207 1:1" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct run_options options = { .kernel = cases[i].kernel };
		struct kernel_text kt;
		const char *got;

		kernel_text_open(&kt, text, sizeof(text) - 1);
		got = outcome(&kt, &options);
		if (kt.cx.diags.n_errors)
			got = kernel_text_first(&kt);
		if (!CHECK(check, strstr(got, cases[i].wanted) != NULL))
			printf("--- %s got\n%s--- wanted\n%s\n", cases[i].kernel, got, cases[i].wanted);
		kernel_text_close(&kt);
	}
}

/* Eager kernels: sizes from --set, --tensor and calls. */
static void test_eager(struct check *check)
{
	static const char text[] = "import tilelang, torch\nimport tilelang.language as T\n"
							   "@tilelang.jit\ndef add(A, B, block=32, dtype='float16'):\n"
							   "    M, N = T.const('M, N')\n    A: T.Tensor((M, N), dtype)\n    B: "
							   "T.Tensor((M, N), dtype)\n"
							   "    C = T.empty((M, N), dtype)\n"
							   "    with T.Kernel(T.ceildiv(M, block)) as bx:\n        C[bx, 0] = "
							   "A[bx, 0] + B[bx, 0]\n    return C\n";
	static const struct {
		const char *tail;
		struct run_options options;
		const char *wanted;
	} cases[] = {
		{ "",
		  { .sets = "M=64 N=8" },
		  "N = 8 from set\n\tparam A: float16[64, 8]\n\tparam B: float16[64, 8]\n\tparam C: "
		  "float16[64, 8]" },
		{ "",
		  { .tensors = "A=128x16:float16", .sets = "block=64" },
		  "M = 128 from tensor\n\tgiven N = 16 from tensor" },
		{ "a = torch.randn(96, 24, device='cuda')\nadd(a, torch.empty((96, 24)), block=16)\n",
		  { 0 },
		  "M = 96 from tensor" },
		{ "add.compile(M=80, N=24, block=16)\n",
		  { 0 },
		  "M = 80 from call\n\tgiven N = 24 from call" },
		{ "add.compile(M=80, N=24)\n", { .tensors = "A=96x24:float16" }, "M = 96 from tensor" },
		{ "@tilelang.jit\ndef f(X):\n    R, Q, P = T.const('R Q P')\n    shape = [R, Q]\n"
		  "    X: T.StridedTensor[shape, [P, 1], 'float32']\n    with T.Kernel(R) as b:\n"
		  "        X[b, 0] = P\n",
		  { .kernel = "f", .tensors = "X=6x7:float32" },
		  "R = 6 from tensor\n\tgiven Q = 7 from tensor\n\tgiven P = 7 from tensor" },
		{ "@T.macro\ndef launch(X):\n    with T.Kernel(X.shape[0]) as b:\n        X[b] = 1\n"
		  "@tilelang.jit\ndef f(X: T.Tensor[[9], 'float32']):\n    launch(X)\n",
		  { .kernel = "f" },
		  "launch b: 9," },
		{ "@T.prim_func\ndef f(X):\n    X: T.Tensor[[9], 'float32']\n"
		  "    Y = T.empty((9,), 'float32')\n    with T.Kernel(9) as b:\n        Y[b] = X[b]\n"
		  "    return Y\n",
		  { .kernel = "f" },
		  "param X: float32[9]\n\tparam Y: float32[9]" },
		{ "", { .sets = "M=64" }, "E0206 4:5" },
		{ "", { .tensors = "A=12y" }, "E0209 0:0" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf whole = { 0 };
		struct kernel_text kt;
		const char *got;

		buf_printf(&whole, "%s%s", text, cases[i].tail);
		kernel_text_open(&kt, whole.p, whole.n);
		got = outcome(&kt, &cases[i].options);
		if (kt.cx.diags.n_errors)
			got = kernel_text_first(&kt);
		if (!CHECK(check, strstr(got, cases[i].wanted) != NULL))
			printf("--- got\n%s--- wanted\n%s\n", got, cases[i].wanted);
		kernel_text_close(&kt);
		buf_free(&whole);
	}
}

/* Texts that ask for too much end with a message. */
static void test_limits(struct check *check)
{
	static const char *const hosts[] = {
		"x = list(range(10 ** 12))",
		"while True:\n    pass",
		"for i in range(10 ** 12):\n    x = i",
		"def f(n):\n    return f(n)\nf(1)",
		"x = [0] * 10 ** 9",
		"x = 'a' * 10 ** 9",
		"x = [1]\nfor i in range(100):\n    x = x + x",
		"x = []\nfor i in range(5000):\n    x = [x]\ny = str(x) == repr(x)",
	};
	struct frontend_options options = { .config = -1, .limits = { .max_steps = 200000 } };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		struct frontend_result result;
		struct kernel_text kt, holder;
		const char *text;

		kernel_text_open(&holder, "", 0);
		text = around(&holder, hosts[i], "v = 1");
		kernel_text_open(&kt, text, strlen(text));
		if (frontend_run(&kt.cx, kt.pool, kt.file, &options, &result))
			CHECK(check, frontend_require(&kt.cx, &options, &result) != NULL);
		else
			CHECK(check, strncmp(kernel_text_first(&kt), "E0212", 5) == 0);
		kernel_text_close(&kt);
		kernel_text_close(&holder);
	}
}

/* Every prefix of a kernel file: a program or an error, and the same twice. */
static void test_prefixes(struct check *check)
{
	static const char text[] =
		"import tilelang.language as T\ndef f(M=8, dtype='float16'):\n  @T.prim_func\n"
		"  def k(A: T.Tensor((M, 4), dtype)):\n    with T.Kernel(M, threads=32) as bx:\n"
		"      s = T.alloc_shared((1, 4), dtype)\n      for i in T.Pipelined(2, num_stages=2):\n"
		"        T.copy(A[bx, 0], s[0, :])\n      x = [j for j in (1, 2)][0] if M > 2 else f'{M}'\n"
		"      A[bx, x] = T.max(s[0, x], 0)\n  return k\nk = f(M=16)\n";
	static const struct run_options no_options = { 0 };

	for (size_t n = 0; n < sizeof(text); n++) {
		struct kernel_text a, b;

		kernel_text_open(&a, text, n);
		kernel_text_open(&b, text, n);
		CHECK_TEXT(check, outcome(&a, &no_options), outcome(&b, &no_options));
		kernel_text_close(&a);
		kernel_text_close(&b);
	}
}

int main(void)
{
	struct check check = { 0 };

	test_device(&check);
	test_host(&check);
	test_errors(&check);
	test_op_examples(&check);
	test_parameters(&check);
	test_choice(&check);
	test_eager(&check);
	test_limits(&check);
	test_prefixes(&check);
	return check_end(&check);
}
