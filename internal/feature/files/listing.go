package files

import (
	"cmp"
	"html"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strconv"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// maxListed is how many entries of a folder are read for a listing.
const maxListed = 5000

// listingPolicy lets a listing load nothing and run nothing, whatever names are in it.
const listingPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// list makes the response that lists a folder. The error is errFolder when it has.
func (s *source) list(ex *exchange.Exchange, dir string) error {
	entries, more, err := s.entries(dir)
	if err != nil {
		return err
	}
	if ex.Rehearsal {
		ex.Note("listing of the folder " + dir)
	}
	rs := &ex.Response
	rs.Reset()
	rs.Status, rs.Ours = statusOK, true
	rs.Header.Add(header.ContentType, "text/html; charset=utf-8")
	rs.Header.AddField("Content-Security-Policy", listingPolicy)
	rs.Header.Add(header.CacheControl, "no-cache")
	rs.Text = appendListing(nil, ex.Request.Path, dir == ".", entries, more)
	rs.Length = int64(len(rs.Text))
	return errFolder
}

// entries returns what of a folder is served, folders first, and whether there is more.
func (s *source) entries(dir string) (list []fs.FileInfo, more bool, err error) {
	f, info, err := s.folder.file(dir)
	if err != nil {
		return nil, false, err
	}
	defer s.folder.close(f)
	if !info.IsDir() {
		return nil, false, errNotRegular
	}
	all, err := f.ReadDir(maxListed + 1)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	if more = len(all) > maxListed; more {
		all = all[:maxListed]
	}
	for _, e := range all {
		name := []byte(e.Name())
		if !visible(name) || !native(name) {
			continue
		}
		// A link is shown if what it leads to is served.
		info, err := s.folder.lookup(dir, e.Name())
		if err == nil && (info.IsDir() || info.Mode().IsRegular()) {
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(a, b fs.FileInfo) int {
		if a.IsDir() != b.IsDir() {
			if a.IsDir() {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name(), b.Name())
	})
	return list, more, nil
}

// appendListing appends the page. Names are untrusted: who can write files may choose them.
func appendListing(b []byte, path string, root bool, list []fs.FileInfo, more bool) []byte {
	title := path
	if plain, err := url.PathUnescape(path); err == nil {
		title = plain
	}
	title = html.EscapeString(title)
	b = append(b, `<!doctype html><html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>`...)
	b = append(append(b, title...), `</title><style>body{font:15px/1.6 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}td{padding:.1rem 1.5rem .1rem 0}td+td{text-align:right;white-space:nowrap;color:#667}@media(prefers-color-scheme:dark){body{background:#12171d;color:#e6ebf0}a{color:#8ab4f8}}</style></head><body><h1>`...)
	b = append(append(b, title...), `</h1><table>`...)
	if !root {
		b = append(b, `<tr><td><a href="../">../</a></td><td></td><td></td></tr>`...)
	}
	for _, e := range list {
		slash, size := "", strconv.FormatInt(e.Size(), 10)
		if e.IsDir() {
			slash, size = "/", ""
		}
		// "./" keeps a name such as "javascript:x" from being read as a scheme.
		b = append(append(append(b, `<tr><td><a href="./`...), html.EscapeString(url.PathEscape(e.Name()))...), slash...)
		b = append(append(append(b, `">`...), html.EscapeString(e.Name())...), slash...)
		b = append(append(b, `</a></td><td>`...), size...)
		b = append(b, `</td><td>`...)
		b = e.ModTime().UTC().AppendFormat(b, "2006-01-02 15:04")
		b = append(b, `</td></tr>`...)
	}
	b = append(b, `</table>`...)
	if more {
		b = append(b, `<p>There are more files than are listed here.</p>`...)
	}
	return append(b, "</body></html>\n"...)
}
