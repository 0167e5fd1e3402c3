package cache

import (
	"strings"
	"time"
)

// parseDate reads an HTTP-date in any of its three forms (RFC 9110, section
// 5.6.7). A cache ignores case and treats a zone other than GMT as an error
// (RFC 9111, section 4.2). It returns false for anything else, which counts as
// a time in the past.
func parseDate(s string) (unix int64, ok bool) {
	_, rest, comma := strings.Cut(s, ",")
	var d moment
	switch {
	case !comma:
		ok = d.asctime(s)
	case strings.IndexByte(rest, '-') >= 0:
		ok = d.rfc850(rest)
	default:
		ok = d.fixdate(s)
	}
	if !ok || !d.valid() {
		return 0, false
	}
	return time.Date(d.year, time.Month(d.month), d.day, d.hour, d.minute, d.second, 0, time.UTC).Unix(), true
}

// moment is a date that is being read.
type moment struct{ year, month, day, hour, minute, second int }

func (d *moment) valid() bool {
	return d.month > 0 && d.day > 0 && d.day <= 31 && d.hour < 24 && d.minute < 60 && d.second <= 60
}

// fixdate reads "Sun, 06 Nov 1994 08:49:37 GMT".
func (d *moment) fixdate(s string) bool {
	return len(s) == 29 && s[3:5] == ", " && s[7] == ' ' && s[11] == ' ' && s[16] == ' ' && s[25] == ' ' &&
		strings.EqualFold(s[26:], "GMT") && number(s[5:7], &d.day) && monthOf(s[8:11], &d.month) &&
		number(s[12:16], &d.year) && d.clock(s[17:25])
}

// rfc850 reads " 06-Nov-94 08:49:37 GMT" behind the name of the day. A year that
// seems more than fifty years ahead is one of the last century.
func (d *moment) rfc850(s string) bool {
	if len(s) != 23 || s[0] != ' ' || s[3] != '-' || s[7] != '-' || s[10] != ' ' || s[19] != ' ' ||
		!strings.EqualFold(s[20:], "GMT") || !number(s[1:3], &d.day) || !monthOf(s[4:7], &d.month) ||
		!number(s[8:10], &d.year) || !d.clock(s[11:19]) {
		return false
	}
	if d.year += 2000; d.year > time.Now().Year()+50 {
		d.year -= 100
	}
	return true
}

// asctime reads "Sun Nov  6 08:49:37 1994".
func (d *moment) asctime(s string) bool {
	if len(s) != 24 || s[3] != ' ' || s[7] != ' ' || s[10] != ' ' || s[19] != ' ' {
		return false
	}
	day := s[8:10]
	if day[0] == ' ' {
		day = day[1:]
	}
	return monthOf(s[4:7], &d.month) && number(day, &d.day) && d.clock(s[11:19]) && number(s[20:], &d.year)
}

// clock reads "08:49:37".
func (d *moment) clock(s string) bool {
	return s[2] == ':' && s[5] == ':' && number(s[:2], &d.hour) && number(s[3:5], &d.minute) && number(s[6:], &d.second)
}

func number(s string, n *int) bool {
	*n = 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
		*n = *n*10 + int(s[i]-'0')
	}
	return len(s) > 0
}

const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

func monthOf(s string, n *int) bool {
	for i := 0; i < len(months); i += 3 {
		if strings.EqualFold(s, months[i:i+3]) {
			*n = i/3 + 1
			return true
		}
	}
	return false
}
