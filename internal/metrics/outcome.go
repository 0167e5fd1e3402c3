package metrics

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strconv"

	"headgate/internal/exchange"
)

// outcomes counts requests by method and status. Both have few values whatever clients
// and servers send: unknown methods are one, and statuses that have no
// name are counted by their class. The most routes have few pairs of both, for which there
// is room; with more come rows for all.
type outcomes struct {
	few  [fewOutcomes]outcome
	rows *[len(methodNames)][maxStatuses]uint64
}

// outcome is how many requests had a method and a status.
type outcome struct {
	n      uint64 // 0 for none, where there is room
	method uint8
	status uint8 // its place in statusNames
}

// fewOutcomes is for how many pairs of a method and a status there is room.
const fewOutcomes = 3

// methodNames are the values of the label method.
var methodNames = [...]string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "other"}

// methodIndex returns the place of a method.
func methodIndex(method string) int {
	switch method {
	case "GET":
		return 0
	case "HEAD":
		return 1
	case "POST":
		return 2
	case "PUT":
		return 3
	case "DELETE":
		return 4
	case "PATCH":
		return 5
	case "OPTIONS":
		return 6
	case "CONNECT":
		return 7
	case "TRACE":
		return 8
	}
	return len(methodNames) - 1
}

// maxStatuses is how many values the label status has at most.
const maxStatuses = 80

// statusPlaces are the places of statuses, statusNames the values of the label at these
// places: first the classes.
var statusPlaces, statusNames = statuses()

func statuses() (places [600]uint8, names []string) {
	for class := range classes {
		names = append(names, statusClass(class))
	}
	for code := range places {
		if http.StatusText(code) == "" && code != exchange.StatusClientClosed {
			places[code] = uint8(code / 100)
			continue
		}
		places[code] = uint8(len(names))
		names = append(names, strconv.Itoa(code))
	}
	return places, names
}

// count counts a request.
func (o *outcomes) count(method string, status int) {
	m, place := uint8(methodIndex(method)), uint8(0)
	if uint(status) < uint(len(statusPlaces)) {
		place = statusPlaces[status]
	}
	for i := range o.few {
		f := &o.few[i]
		if f.n == 0 {
			f.method, f.status = m, place
		}
		if f.method == m && f.status == place {
			f.n++
			return
		}
	}
	if o.rows == nil {
		o.rows = new([len(methodNames)][maxStatuses]uint64)
	}
	o.rows[m][place]++
}

// all are the methods and statuses that were counted, by their places.
func (o *outcomes) all() iter.Seq[outcome] {
	return func(yield func(outcome) bool) {
		for _, f := range o.few {
			if f.n > 0 && !yield(f) {
				return
			}
		}
		if o.rows == nil {
			return
		}
		for m := range o.rows {
			for place, n := range o.rows[m] {
				if n > 0 && !yield(outcome{n, uint8(m), uint8(place)}) {
					return
				}
			}
		}
	}
}

// class returns the class of a status.
func (o *outcome) class() int {
	if o.status < classes {
		return int(o.status)
	}
	return int(statusNames[o.status][0] - '0')
}

// sumOutcomes puts those of the same method and status together, in order.
func sumOutcomes(all []outcome) []outcome {
	slices.SortFunc(all, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(a.method, b.method), cmp.Compare(a.status, b.status))
	})
	kept := all[:0]
	for _, o := range all {
		if n := len(kept); n > 0 && kept[n-1].method == o.method && kept[n-1].status == o.status {
			kept[n-1].n += o.n
			continue
		}
		kept = append(kept, o)
	}
	return kept
}
