"""Reports of a finished run for other programs: JUnit XML for a CI server, a Markdown summary for a pull request."""
