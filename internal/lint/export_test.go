package lint

// RuleNames returns the names of the rules that a script can prove.
func RuleNames() []string {
	var names []string
	for _, r := range rules() {
		if r.name != "length" { // TestLongFile
			names = append(names, r.name)
		}
	}
	return names
}
