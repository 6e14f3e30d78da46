"""Export of a corpus: the selection of documents, the formats, and the output file."""
