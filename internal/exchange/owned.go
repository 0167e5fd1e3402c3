package exchange

import "headgate/internal/proto/header"

// Owned are the headers that a filter controls, so that none of them passes where filters
// do not run: in trailers, which arrive after the filters have run, and in interim
// responses. Either function may be nil. They are called from any goroutine that has the
// exchange's trailers.
type Owned struct {
	// Request reports whether only the filter says what a server gets under the
	// name of a field, or under a name that a server takes for it.
	Request func(*header.Field) bool
	// Response reports whether only the filter says what a client gets under the
	// name of a field.
	Response func(*header.Field) bool
}

// RequestTrailer returns the trailers of the request that a server gets: those of
// the client without what filters own. It is empty until Body has returned io.EOF.
func (ex *Exchange) RequestTrailer() *header.List {
	list := &ex.Request.Trailer
	if list.Len() > 0 {
		ex.disown(list, func(o *Owned) func(*header.Field) bool { return o.Request })
	}
	return list
}

// ResponseTrailer returns the trailers of the response that the client gets: those
// of the server without what filters own. It is empty until Body has returned
// io.EOF.
func (ex *Exchange) ResponseTrailer() *header.List {
	list := &ex.Response.Trailer
	if list.Len() > 0 {
		ex.disown(list, func(o *Owned) func(*header.Field) bool { return o.Response })
	}
	return list
}

// Inform sends an interim response of a server (1xx but 100 and 101) to the client,
// without what filters own of its fields, which it drops from the list.
func (ex *Exchange) Inform(status int, fields *header.List) error {
	ex.disown(fields, func(o *Owned) func(*header.Field) bool { return o.Response })
	return ex.Front.Inform(ex, status, fields)
}

// disown drops the fields that one of the filters owns.
func (ex *Exchange) disown(list *header.List, side func(*Owned) func(*header.Field) bool) {
	if ex.pipeline == nil {
		return
	}
	for i := range ex.pipeline.Filters {
		if o := ex.pipeline.Filters[i].Owned; o != nil {
			if owns := side(o); owns != nil {
				list.DeleteFunc(owns)
			}
		}
	}
}
