package plan

import (
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/redact"
)

// redactor returns what takes the values of query parameters out of a finished exchange,
// before the access log and the memory of recent requests see it; nil for no names.
func redactor(names []string) func(*exchange.Exchange) {
	p := redact.New(names)
	if p == nil {
		return nil
	}
	return func(ex *exchange.Exchange) {
		rq := &ex.Request
		if b, found := p.Append(ex.Text.Buffer(), rq.Query); found {
			rq.Query = ex.Text.End(b)
		}
		if from := rq.Header.Get(header.Referer); from != "" {
			if b, found := p.Append(ex.Text.Buffer(), from); found {
				rq.Header.Set(header.Referer, ex.Text.End(b))
			}
		}
	}
}
