package config

// Written returns the text that the documents have for the field with this path,
// if there is ${…} in it. What that stands for came from the environment or from
// a file; it is shown to nobody and never written to a document.
func (c *Config) Written(path string) (text string, ok bool) {
	text, ok = c.expanded[path]
	return text, ok
}
