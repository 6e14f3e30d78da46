"""Tables, figures and experiments made from a crawl."""
