package exchange

import "headgate/internal/proto/header"

// Own copies the parts of the request that are logged later, and forgets the headers of the
// response. A tunnel lives long, and the buffers of its heads must not be held as long:
// after Own nothing of the exchange refers to them.
func (ex *Exchange) Own() {
	rq := &ex.Request
	fields := rq.Header.All()
	size := 0
	each := func(do func(*string)) {
		for _, s := range []*string{&rq.Method, &rq.Scheme, &rq.Host, &rq.Path, &rq.Query, &rq.Target, &rq.Upgrade, &ex.User} {
			do(s)
		}
		for i := range fields {
			do(&fields[i].Name)
			do(&fields[i].Value)
		}
	}
	each(func(s *string) { size += len(*s) })
	b := make([]byte, 0, size)
	each(func(s *string) {
		at := len(b)
		b = append(b, *s...)
		*s = view(b[at:])
	})
	rq.Header.Clip()
	ex.Response.Header = header.List{}
	ex.Text = Text{} // who has something of it keeps it
}
