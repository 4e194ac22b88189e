/* schema: the text of schema.sql; the Makefile turns the file into the array. */
#ifndef TL_DB_SCHEMA_H
#define TL_DB_SCHEMA_H

/* Ends with a NUL. */
extern const char schema_sql[];

#endif
