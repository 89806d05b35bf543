// Nothing of it is in the records.
