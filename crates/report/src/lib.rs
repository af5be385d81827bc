//! A finished run as text, Markdown, JSON, CSV, JUnit and HTML.
