package api

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"headgate/internal/config"
	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// maxDifferences is how many places of an object are changed one by one. Each reads the
// document once more; where more differ, the whole object is set.
const maxDifferences = 64

// replace changes an object into another and leaves the rest of it unchanged, such as
// comments and defaults that are written out. Object is the object's path.
func replace(docs config.Documents, object string, was, want map[string]any) (config.Documents, error) {
	edits := differences(nil, object, was, want)
	if len(was) > 0 && len(want) > 0 && len(edits) <= maxDifferences {
		if out, p := docs.Edit(edits...); p == nil {
			return out, nil
		}
		// The object is written in a short form, or comes from elsewhere.
	}
	return apply(docs, object, document.Edit{Op: document.Set, Path: object, Value: jsonOf(want)})
}

// differences appends the edits that make one value at a path another one. What is set
// comes before what is removed, so that nothing is empty in between.
func differences(edits []document.Edit, path string, was, want any) []document.Edit {
	if reflect.DeepEqual(was, want) || len(edits) > maxDifferences {
		return edits
	}
	switch now := want.(type) {
	case map[string]any:
		before, ok := was.(map[string]any)
		if !ok || len(before) == 0 || len(now) == 0 {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(now)) {
			edits = differences(edits, schema.JoinPath(path, name), before[name], now[name])
		}
		for _, name := range slices.Sorted(maps.Keys(before)) {
			if _, stays := now[name]; !stays {
				edits = append(edits, document.Edit{Op: document.Remove, Path: schema.JoinPath(path, name)})
			}
		}
		return edits
	case []any:
		before, ok := was.([]any)
		if !ok || len(before) != len(now) {
			break
		}
		for i := range now {
			edits = differences(edits, fmt.Sprintf("%s[%d]", path, i), before[i], now[i])
		}
		return edits
	}
	return append(edits, document.Edit{Op: document.Set, Path: path, Value: jsonOf(want)})
}
