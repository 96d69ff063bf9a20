"""Lists as files: stock lists and bills, read and written as CSV and JSON for every edge."""
