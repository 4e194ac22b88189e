sh shows.inc even
