package schema

// Lines returns a compact JSON document with a line for each value down to a depth, so that a
// change of a generated document is a change of few lines. Indentation would be a third of a
// large one, and is part of the program.
func Lines(compact []byte, depth int) []byte {
	out := make([]byte, 0, len(compact)+len(compact)/32)
	at, text := 0, false
	for i, c := range compact {
		if text {
			out = append(out, c)
			text = c != '"' || escaped(compact[:i])
			continue
		}
		switch c {
		case '"':
			text = true
		case '}', ']':
			if at <= depth && compact[i-1] != '{' && compact[i-1] != '[' {
				out = append(out, '\n')
			}
			at--
		}
		out = append(out, c)
		switch c {
		case '{', '[':
			at++
			if at <= depth && compact[i+1] != '}' && compact[i+1] != ']' {
				out = append(out, '\n')
			}
		case ',':
			if at <= depth {
				out = append(out, '\n')
			}
		}
	}
	return append(out, '\n')
}

// escaped reports whether the character behind text is escaped: behind an odd number of
// backslashes.
func escaped(text []byte) bool {
	n := 0
	for i := len(text) - 1; i >= 0 && text[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}
