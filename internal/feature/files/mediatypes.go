package files

import "strings"

// types are the media types of files by their extension, in lower case. The table is
// fixed, so that a file has the same type on every machine.
var types = map[string]string{
	"html": "text/html; charset=utf-8", "htm": "text/html; charset=utf-8", "xhtml": "application/xhtml+xml",
	"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "mjs": "text/javascript; charset=utf-8",
	"json": "application/json", "map": "application/json", "jsonld": "application/ld+json", "geojson": "application/geo+json",
	"webmanifest": "application/manifest+json", "wasm": "application/wasm",
	"txt": "text/plain; charset=utf-8", "log": "text/plain; charset=utf-8", "md": "text/markdown; charset=utf-8",
	"csv": "text/csv; charset=utf-8", "ics": "text/calendar; charset=utf-8", "vcf": "text/vcard; charset=utf-8",
	"vtt": "text/vtt; charset=utf-8", "xml": "text/xml; charset=utf-8", "xsl": "text/xml; charset=utf-8",
	"yaml": "application/yaml", "yml": "application/yaml", "toml": "application/toml",
	"rss": "application/rss+xml", "atom": "application/atom+xml",
	"svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
	"webp": "image/webp", "avif": "image/avif", "jxl": "image/jxl", "heic": "image/heic", "apng": "image/apng",
	"ico": "image/x-icon", "bmp": "image/bmp", "tif": "image/tiff", "tiff": "image/tiff",
	"woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf", "otf": "font/otf", "eot": "application/vnd.ms-fontobject",
	"mp4": "video/mp4", "m4v": "video/mp4", "webm": "video/webm", "ogv": "video/ogg", "mov": "video/quicktime",
	"avi": "video/x-msvideo", "mkv": "video/x-matroska", "mpeg": "video/mpeg", "mpg": "video/mpeg", "ts": "video/mp2t",
	"m3u8": "application/vnd.apple.mpegurl", "mpd": "application/dash+xml",
	"mp3": "audio/mpeg", "m4a": "audio/mp4", "ogg": "audio/ogg", "oga": "audio/ogg", "opus": "audio/ogg",
	"wav": "audio/wav", "flac": "audio/flac", "aac": "audio/aac", "weba": "audio/webm",
	"pdf": "application/pdf", "epub": "application/epub+zip", "rtf": "application/rtf",
	"doc": "application/msword", "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xls": "application/vnd.ms-excel", "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"ppt": "application/vnd.ms-powerpoint", "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"odt": "application/vnd.oasis.opendocument.text", "ods": "application/vnd.oasis.opendocument.spreadsheet",
	"zip": "application/zip", "gz": "application/gzip", "tgz": "application/gzip", "bz2": "application/x-bzip2",
	"xz": "application/x-xz", "zst": "application/zstd", "tar": "application/x-tar", "7z": "application/x-7z-compressed",
	"rar": "application/vnd.rar", "jar": "application/java-archive", "apk": "application/vnd.android.package-archive",
	"deb": "application/vnd.debian.binary-package", "rpm": "application/x-rpm", "dmg": "application/x-apple-diskimage",
	"iso": "application/x-iso9660-image", "ttml": "application/ttml+xml", "crl": "application/pkix-crl",
	"crt": "application/x-x509-ca-cert", "der": "application/x-x509-ca-cert", "pem": "application/x-pem-file",
}

// unknownType is the media type of files whose extension is not in the table. Browsers
// download them.
const unknownType = "application/octet-stream"

// longestExtension is the length of the longest extension of the table.
const longestExtension = len("webmanifest")

// typeOf returns the media type of a file.
func typeOf(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || len(name)-i-1 > longestExtension {
		return unknownType
	}
	var b [longestExtension]byte
	n := copy(b[:], name[i+1:])
	for i, c := range b[:n] {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	if kind := types[string(b[:n])]; kind != "" {
		return kind
	}
	return unknownType
}
