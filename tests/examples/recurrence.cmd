sh check.inc recurrence
