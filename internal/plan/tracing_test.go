package plan

import (
	"testing"

	"headgate/internal/exchange"
)

// TestEveryRequestHasATrace holds that what no route takes is traced too, also when no
// route was compiled anew.
func TestEveryRequestHasATrace(t *testing.T) {
	const text = "tracing: {enabled: true}\nproxies:\n"
	var ids []string
	house := House{RecordOf: "log", Record: func(string) func(*exchange.Exchange) {
		return func(ex *exchange.Exchange) { ids = append(ids, ex.TraceID) }
	}}
	first, problems := Compile(load(t, text+named("a", "a.example", "/x")), nil, house, nil)
	if problems != nil {
		t.Fatal(problems)
	}
	second, problems := Compile(load(t, text+named("a", "a.example", "/x")), first, house, nil)
	if problems != nil {
		t.Fatal(problems)
	}
	first.Retire(second)
	defer second.Retire(nil)
	for _, path := range []string{"/x/y", "/y", "/%"} {
		request(second.Port("web"), "GET", "a.example", path)
	}
	if len(ids) != 3 {
		t.Fatalf("%d lines, want 3", len(ids))
	}
	for i, id := range ids {
		if len(id) != 32 || i > 0 && id == ids[i-1] {
			t.Errorf("request %d has the trace %q", i, id)
		}
	}
}
