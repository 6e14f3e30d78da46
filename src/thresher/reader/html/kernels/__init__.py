"""One pass over the bytes of a page: text, blocks, elements and links, in time linear in its length."""
