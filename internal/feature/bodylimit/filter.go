package bodylimit

import (
	"errors"

	"headgate/internal/exchange"
)

// Compile returns the filter that refuses request bodies of more than *c bytes:
// at once when the length is known, else while the body streams.
func Compile(c *Config, _ exchange.Env) (exchange.Filter, error) {
	limit := int64(*c)
	tooLarge := &exchange.Answer{Reason: exchange.BodyTooLarge, Cause: "Content-Length is above request_body_limit"}
	return exchange.Filter{
		Name: "request_body_limit",
		Request: func(ex *exchange.Exchange) *exchange.Answer {
			rq := &ex.Request
			switch {
			case rq.Length > limit:
				return tooLarge
			case rq.Length < 0 && rq.Body != nil:
				rq.Body = &body{Body: rq.Body, left: limit}
			}
			return nil
		},
	}, nil
}

// body is a request body of unknown length that ends with an error when it is
// longer than allowed. Nothing is buffered.
type body struct {
	exchange.Body
	left int64
	err  error
}

// Read reads from the body below. One byte more than allowed is asked for, so
// that a body of just the allowed size passes.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.Body.Read(p)
	if int64(n) > b.left {
		b.err = &exchange.Error{Reason: exchange.BodyTooLarge, Err: errTooLarge}
		n, b.left = int(b.left), 0
		return n, b.err
	}
	b.left -= int64(n)
	return n, err
}

var errTooLarge = errors.New("the body is larger than request_body_limit")
