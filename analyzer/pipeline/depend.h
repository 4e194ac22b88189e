/*
 * depend: which buffers a statement reads and writes, itself and all that is nested in it.
 */
#ifndef TL_PIPELINE_DEPEND_H
#define TL_PIPELINE_DEPEND_H

#include "analyzer/tile/tile.h"

/*
 * One use of a buffer; a buffer may occur several times. Other shapes and types of a memory count
 * as its owner (alias_owner).
 */
struct buffer_use {
	const struct buffer *buffer; /* the owner */
	const struct buffer *named;  /* as the statement has it */
	const struct stmt *stmt;     /* the innermost statement */
	bool reads, writes;
};

struct use_list {
	struct arena *arena;
	vec_of(struct buffer_use) uses;
};

/* Where a region begins along dimension `d`; of one that is gathered the index of each element. */
const struct expr *region_index_expr(const struct region *region, uint32_t d);
/* Appends the uses of a statement, itself and all that is nested in it, in program order. */
void depend_stmt(struct use_list *list, struct stmt *stmt);
/* The same for every statement of a block. */
void depend_block(struct use_list *list, struct block *block);
/* Appends the buffers that an expression loads. */
void depend_expr(struct use_list *list, const struct stmt *stmt, const struct expr *e);

/* Is the buffer read, or written, anywhere in the list? */
bool use_list_reads(const struct use_list *list, const struct buffer *buffer);
bool use_list_writes(const struct use_list *list, const struct buffer *buffer);

#endif
