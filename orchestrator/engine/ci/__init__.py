"""What a finished run tells other programs: JUnit XML for a CI server, a Markdown summary for a pull request."""
