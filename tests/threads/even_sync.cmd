sh shows.inc even_sync
