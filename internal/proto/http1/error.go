package http1

// Error is the rule that a message breaks. Errors are compared by value; the
// zero value is no error and never returned.
type Error uint8

// The rules; Error describes each.
const (
	none Error = iota
	more       // the message may be right, but has not arrived whole; internal

	// Of the head of any message.
	HeadTooLarge
	TooManyFields
	BareLF
	BareCR
	ControlInValue
	ObsFold
	SpaceBeforeColon
	EmptyName
	BadName
	NoColon
	LookalikeName
	BadVersion
	VersionUnsupported

	// Of requests.
	EmptyLines
	BadMethod
	MethodTooLong
	ConnectRefused
	URITooLong
	BadTargetByte
	BadRequestLine
	BadTargetForm
	BadScheme
	BadAuthority
	Userinfo
	AsteriskMethod
	HostMissing
	HostRepeated
	BadHost
	BadExpect
	NominatedField
	TooManyOptions
	TraceBody

	// Of framing.
	LengthWithCoding
	LengthRepeated
	BadLength
	LengthOverflow
	CodingInOldVersion
	BadCoding
	CodingNotChunked
	ChunkedTwice
	CodingUnknown

	// Of responses.
	BadStatusLine
	BadStatus
	BadReason
	FramedNoContent
	SwitchNotAsked
	SwitchIncomplete
	SwitchNotOffered

	// Of chunked bodies.
	BadChunkSize
	ChunkSizeOverflow
	BadChunkExtension
	ChunkLineTooLong
	ChunkExtensionsTooLong
	BadChunkLineEnd
	BadChunkEnd
	TrailerTooLarge
	TruncatedBody // for readers: the connection ended before the body did

	errorCount
)

// refusal is how one rule is reported to a client and to an operator.
type refusal struct {
	status int
	detail string
}

var refusals = [errorCount]refusal{
	HeadTooLarge:       {431, "the head is larger than the limit (RFC 6585, section 5)"},
	TooManyFields:      {431, "the head has more fields than the limit (RFC 6585, section 5)"},
	BareLF:             {400, "a line ends in LF without CR (RFC 9112, section 2.2)"},
	BareCR:             {400, "a CR is not followed by LF (RFC 9112, section 2.2)"},
	ControlInValue:     {400, "a field value contains a control character (RFC 9110, section 5.5)"},
	ObsFold:            {400, "a line starts with white space: folded lines are obsolete (RFC 9112, section 5.2)"},
	SpaceBeforeColon:   {400, "white space between field name and colon (RFC 9112, section 5.1)"},
	EmptyName:          {400, "a field name is empty (RFC 9110, section 5.1)"},
	BadName:            {400, "a field name is not a token (RFC 9110, section 5.1)"},
	NoColon:            {400, "a field line has no colon (RFC 9112, section 5)"},
	LookalikeName:      {400, "a field name reads as a framing field to some servers (RFC 9112, section 11.2)"},
	BadVersion:         {400, "the protocol version is not HTTP/digit.digit (RFC 9112, section 2.3)"},
	VersionUnsupported: {505, "the protocol version is not HTTP/1 (RFC 9110, section 15.6.6)"},

	EmptyLines:     {400, "more than one empty line before the request line (RFC 9112, section 2.2)"},
	BadMethod:      {400, "the method is not a token followed by one space (RFC 9112, section 3.1)"},
	MethodTooLong:  {501, "the method is longer than any known one (RFC 9112, section 3)"},
	ConnectRefused: {501, "CONNECT is a request to a forward proxy, which headgate is not (RFC 9110, section 9.3.6)"},
	URITooLong:     {414, "the request target is longer than the limit (RFC 9110, section 15.5.15)"},
	BadTargetByte:  {400, "the request target holds a byte that no URI has (RFC 9112, section 3.2)"},
	BadRequestLine: {400, "the request line is not method, target and version with one space between (RFC 9112, section 3)"},
	BadTargetForm:  {400, "the request target is neither a path nor an http URI (RFC 9112, section 3.2)"},
	BadScheme:      {400, "the request target's scheme is neither http nor https (RFC 9110, section 4.2)"},
	BadAuthority:   {400, "the request target's host or port is not valid (RFC 9110, section 4.2.1)"},
	Userinfo:       {400, "the request target or Host holds user information (RFC 9110, section 4.2.4)"},
	AsteriskMethod: {400, "the target * is for OPTIONS only (RFC 9112, section 3.2.4)"},
	HostMissing:    {400, "an HTTP/1.1 request has no Host (RFC 9112, section 3.2)"},
	HostRepeated:   {400, "more than one Host (RFC 9112, section 3.2)"},
	BadHost:        {400, "the Host is not a valid host and port (RFC 9110, section 7.2)"},
	BadExpect:      {400, "an Expect other than one 100-continue (RFC 9110, section 10.1.1)"},
	NominatedField: {400, "Connection names Host or Content-Length (RFC 9110, section 7.6.1)"},
	TooManyOptions: {400, "Connection lists too many options (RFC 9110, section 7.6.1)"},
	TraceBody:      {400, "TRACE with content (RFC 9110, section 9.3.8)"},

	LengthWithCoding:   {400, "Content-Length together with Transfer-Encoding (RFC 9112, section 6.1)"},
	LengthRepeated:     {400, "more than one Content-Length (RFC 9112, section 6.3)"},
	BadLength:          {400, "Content-Length is not a number of decimal digits (RFC 9110, section 8.6)"},
	LengthOverflow:     {400, "Content-Length is too large a number (RFC 9110, section 8.6)"},
	CodingInOldVersion: {400, "Transfer-Encoding in HTTP/1.0 (RFC 9112, section 6.1)"},
	BadCoding:          {400, "Transfer-Encoding is not a list of codings without parameters (RFC 9112, section 7)"},
	CodingNotChunked:   {400, "the last transfer coding is not chunked (RFC 9112, section 6.3)"},
	ChunkedTwice:       {400, "the chunked coding is applied more than once (RFC 9112, section 7.1)"},
	CodingUnknown:      {501, "a transfer coding other than chunked (RFC 9112, section 6.1)"},

	BadStatusLine:    {502, "the status line is not version and status with one space between (RFC 9112, section 4)"},
	BadStatus:        {502, "the status is not three digits from 100 on (RFC 9110, section 15)"},
	BadReason:        {502, "the reason phrase contains a control character (RFC 9112, section 4)"},
	FramedNoContent:  {502, "content announced in a 1xx or 204 response (RFC 9112, section 6.1; RFC 9110, section 8.6)"},
	SwitchNotAsked:   {502, "101 to a request without an upgrade (RFC 9110, section 15.2.2)"},
	SwitchIncomplete: {502, "101 without Connection: upgrade and Upgrade (RFC 9110, section 7.8)"},
	SwitchNotOffered: {502, "101 to another protocol than the request offered (RFC 9110, section 7.8)"},

	BadChunkSize:           {400, "a chunk size is not hexadecimal digits (RFC 9112, section 7.1)"},
	ChunkSizeOverflow:      {400, "a chunk size is too large a number (RFC 9112, section 7.1)"},
	BadChunkExtension:      {400, "a chunk extension is malformed (RFC 9112, section 7.1.1)"},
	ChunkLineTooLong:       {400, "a chunk size line is longer than the limit (RFC 9112, section 7.1.1)"},
	ChunkExtensionsTooLong: {400, "the chunk extensions of a body are longer than the limit (RFC 9112, section 7.1.1)"},
	BadChunkLineEnd:        {400, "a chunk size line does not end in CRLF (RFC 9112, section 7.1)"},
	BadChunkEnd:            {400, "chunk data is not followed by CRLF (RFC 9112, section 7.1)"},
	TrailerTooLarge:        {431, "the trailer section is larger than the limit (RFC 9112, section 7.1.2)"},
	TruncatedBody:          {400, "the connection ended within the body (RFC 9112, section 8)"},
}

// Error returns the rule that was broken, for logs. It never holds bytes of the
// message.
func (e Error) Error() string { return refusals[e].detail }

// Status returns the status with which a request that broke the rule is
// answered: 400, 414, 431, 501 or 505. For a response from a server it means
// nothing; the proxy answers 502.
func (e Error) Status() int { return refusals[e].status }
