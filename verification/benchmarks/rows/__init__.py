"""The groups of rows: each module measures one question and returns its rows."""
