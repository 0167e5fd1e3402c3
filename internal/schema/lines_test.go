package schema

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestLinesAreTheSameDocument(t *testing.T) {
	for _, text := range []string{`{}`, `[]`, `{"a":{"b":[1,2,{"c":"x,y{}[]\"\\"}],"d":{}},"e":"\\\\","f":[]}`, `"a\\"`, `[[[[]]]]`} {
		for depth := range 5 {
			got := Lines([]byte(text), depth)
			var compact bytes.Buffer
			if err := json.Compact(&compact, got); err != nil || compact.String() != text {
				t.Errorf("%s in lines to depth %d: %v\n%s", text, depth, err, got)
			}
		}
	}
	want := "{\n\"a\":{\n\"b\":[1,2]\n},\n\"c\":1\n}\n"
	if got := string(Lines([]byte(`{"a":{"b":[1,2]},"c":1}`), 2)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
