package http1

// StatusRangeNotSatisfiable is the status of an answer to a range that lies
// outside of what there is (RFC 9110, section 15.5.17).
const StatusRangeNotSatisfiable = 416

// CacheableByDefault reports whether a response with this status may be stored
// when it says nothing of it (RFC 9110, section 15.1). 206 is left out: who
// stores it has to understand ranges.
func CacheableByDefault(status int) bool {
	switch status {
	case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501:
		return true
	}
	return false
}

// UnderstoodByCache reports whether the caching requirements of a status are
// known, for the must-understand directive (RFC 9111, section 5.2.2.3).
func UnderstoodByCache(status int) bool {
	switch status {
	case 302, 303, 307:
		return true
	}
	return CacheableByDefault(status)
}

// ServerFailed reports whether a stale response may be used in place of one
// with this status (RFC 5861, section 4).
func ServerFailed(status int) bool {
	switch status {
	case 500, 502, 503, 504:
		return true
	}
	return false
}
