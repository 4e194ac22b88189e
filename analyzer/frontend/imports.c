/*
 * Imports: which modules are known by name, and files under the folder that the user names.
 *
 *     import math                            known: its functions stand in tables
 *     from helpers.scales import LOG2_E      with --import-root DIR: DIR/helpers/scales.py is run
 *     import einops                          unknown: a value that says so when it matters
 *
 * Nothing outside that folder is opened, and without --import-root nothing at all. A file runs
 * once; its kernels are not listed, but its helpers and macros may be called.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IMPORTED_FILES = 64, MAX_IMPORT_NESTING = 16 };

/* Is the file's real path inside the folder? Symbolic links must not lead out. */
static bool is_inside(const char *folder, const char *path)
{
	char root[PATH_MAX], real[PATH_MAX];
	size_t n;

	if (!realpath(folder, root) || !realpath(path, real))
		return false;
	n = strlen(root);
	return strncmp(root, real, n) == 0 && (root[n - 1] == '/' || real[n] == '/');
}

/* The folder of the file that a span is in, and as many folders up. */
static const char *folder_of(struct eval *ev, struct span span, uint32_t up)
{
	const char *path = source_get(&ev->cx->sources, span.file)->path;
	const char *slash = strrchr(path, '/');
	const char *folder = slash ? arena_strndup(ev->cx->arena, path, (size_t)(slash - path)) : ".";

	while (up-- > 0)
		folder = arena_printf(ev->cx->arena, "%s/..", folder);
	return folder;
}

/* The module's file under the import root, or NULL. Dots in front count from the file itself. */
static const char *module_path(struct eval *ev, struct str module, struct span span)
{
	static const char *const endings[] = { ".py", "/__init__.py", ".tl" };
	const char *root = ev->options->import_root, *base = root;
	uint32_t n_dots = 0;
	char *name;

	while (module.n && module.p[0] == '.')
		module.p++, module.n--, n_dots++;
	if (!root || module.n == 0 || n_dots > MAX_IMPORT_NESTING)
		return NULL;
	if (n_dots)
		base = folder_of(ev, span, n_dots - 1);
	name = arena_strndup(ev->cx->arena, module.p, module.n);
	for (uint32_t i = 0; i < module.n; i++)
		name[i] = (char)(name[i] == '.' ? '/' : name[i]);
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		const char *path = arena_printf(ev->cx->arena, "%s/%s%s", base, name, endings[i]);

		if (is_inside(root, path))
			return path;
	}
	return NULL;
}

/* Runs the file in names of its own. Its mistakes matter only where its values do. */
static struct frame *run_file(struct eval *ev, const char *path, struct str text)
{
	struct diag_list outer = ev->cx->diags;
	struct trace *trace = ev->trace;
	bool was_strict = ev->is_strict;
	uint32_t file = source_add(ev->cx->arena, &ev->cx->sources, path, text);
	struct frame *frame = new_frame(ev, NULL, NULL);
	struct value result = VALUE_NONE;
	const struct ast_module *module;

	ev->cx->diags = (struct diag_list){ .arena = ev->cx->arena };
	module = parse_file(ev->cx, file, ev->limits.max_calls);
	ev->trace = NULL;
	ev->is_strict = false;
	bind_name(ev, frame, intern_text(ev->cx->names, "__name__"), VALUE_STR(str_of(path)));
	if (module)
		exec_body(ev, frame, &module->body, &result);
	ev->trace = trace;
	ev->is_strict = was_strict;
	if (!ev->is_fatal)
		ev->cx->diags = outer;
	return module ? frame : NULL;
}

/*
 * The names of an imported file, or NULL when the module is none, or one that is still running (a
 * cycle of imports).
 */
static struct frame *import_file(struct eval *ev, struct str module, struct span span)
{
	const char *path = module_path(ev, module, span);
	size_t max_bytes =
		ev->options->limits.max_source_bytes ? ev->options->limits.max_source_bytes : 8 << 20;
	struct buf text = { 0 };
	struct frame *frame;
	sym_t key;

	if (!path || !ev_step(ev, span))
		return NULL;
	key = intern_text(ev->cx->names, path);
	if (map_find(&ev->imports, key))
		return map_get(&ev->imports, key);
	if (ev->imports.n >= MAX_IMPORTED_FILES || ev->n_importing >= MAX_IMPORT_NESTING ||
	    !buf_read_file(&text, path, max_bytes))
		return NULL;
	map_at(ev->cx->arena, &ev->imports, key)->value.pointer = NULL;
	ev->n_importing++;
	frame = run_file(ev, path, buf_str(&text));
	ev->n_importing--;
	map_at(ev->cx->arena, &ev->imports, key)->value.pointer = frame;
	buf_free(&text);
	return frame;
}

/* Modules that are known keep their path, all others are unknown values. */
static struct value imported_module(struct eval *ev, struct str path, struct span span)
{
	static const char *const known[] = { "tilelang",  "math",     "torch", "itertools",
		                                 "functools", "argparse", "tvm" };
	uint32_t n = 0;

	while (n < path.n && path.p[n] != '.')
		n++;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (str_equal((struct str){ path.p, n }, str_of(known[i])))
			return (struct value){
				.kind = V_MODULE,
				.as.module = intern_text(ev->cx->names,
				                         module_alias(arena_strndup(ev->cx->arena, path.p, path.n)))
			};
	}
	return ev_opaque(ev, span, arena_strndup(ev->cx->arena, path.p, path.n));
}

/* from m import *: the names that do not begin with an underscore. */
static void import_all(struct eval *ev, struct frame *frame, const struct frame *from)
{
	for (uint32_t i = 0; i < from->names.n; i++) {
		sym_t name = (sym_t)from->names.entries[i].key;
		const struct binding *binding = from->names.entries[i].value.pointer;

		if (sym_text(ev->cx->names, name)[0] != '_')
			bind_name(ev, frame, name, binding->value);
	}
}

/* A file as a value: its names are attributes. */
static struct value file_value(struct eval *ev, const struct frame *from)
{
	struct value value = { .kind = V_ARGUMENTS };

	value.as.dict = arena_new(ev->cx->arena, struct dict);
	for (uint32_t i = 0; i < from->names.n; i++) {
		sym_t name = (sym_t)from->names.entries[i].key;
		const struct binding *binding = from->names.entries[i].value.pointer;

		dict_set(ev->cx->arena, value.as.dict, VALUE_STR(str_of(sym_text(ev->cx->names, name))),
		         binding->value);
	}
	return value;
}

/* `from module import name`, of a module that is no file. */
static struct value module_member(struct eval *ev, const struct ast_import *import)
{
	const struct builtin *anywhere = find_builtin(ev, "*", import->name);
	struct value module = imported_module(ev, import->module, import->span);

	if (anywhere)
		return (struct value){ .kind = V_BUILTIN, .as.builtin = anywhere };
	if (module.kind == V_MODULE)
		return eval_attribute(ev, module, import->name, import->span);
	return ev_opaque(ev, import->span,
	                 arena_printf(ev->cx->arena, "%.*s.%s", STR_ARGS(import->module),
	                              sym_text(ev->cx->names, import->name)));
}

/* Names bound by `from m import *` of an unknown module are looked up nowhere. */
static void import_one(struct eval *ev, struct frame *frame, const struct ast_import *import)
{
	struct frame *from = import_file(ev, import->module, import->span);
	struct str head = import->module;
	const struct binding *binding;

	if (!import->name) {
		while (!import->bound && memchr(head.p, '.', head.n))
			head.n--; /* `import a.b` binds a */
		bind_name(ev, frame, import->bound ? import->bound : intern(ev->cx->names, head),
		          from && head.n == import->module.n ? file_value(ev, from)
		                                             : imported_module(ev, head, import->span));
		return;
	}
	if (strcmp(sym_text(ev->cx->names, import->name), "*") == 0) {
		if (from)
			import_all(ev, frame, from);
		return;
	}
	binding = from ? frame_find(from, import->name) : NULL;
	bind_name(ev, frame, import->bound, binding ? binding->value : module_member(ev, import));
}

void exec_imports(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	assert(st->kind == ST_IMPORT);
	for (uint32_t i = 0; i < st->as.imports.n && !ev->is_fatal; i++)
		import_one(ev, frame, &st->as.imports.p[i]);
}
