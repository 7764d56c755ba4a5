"""PDF: text page by page, pages as pictures."""
