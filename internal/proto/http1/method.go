package http1

// Method is the small number of a well-known method. The zero value represents
// all others. Methods are case-sensitive (RFC 9110, section 9.1).
type Method uint8

// The methods of RFC 9110 and RFC 5789.
const (
	OtherMethod Method = iota
	Get
	Head
	Post
	Put
	Delete
	Connect
	Options
	Trace
	Patch
	methodCount
)

var methodNames = [methodCount]string{
	Get: "GET", Head: "HEAD", Post: "POST", Put: "PUT", Delete: "DELETE",
	Connect: "CONNECT", Options: "OPTIONS", Trace: "TRACE", Patch: "PATCH",
}

// String returns the method as it is sent, or "" for OtherMethod.
func (m Method) String() string { return methodNames[m] }

// lookupMethod returns the number of a method, or OtherMethod.
func lookupMethod(name string) Method {
	switch name {
	case "GET":
		return Get
	case "HEAD":
		return Head
	case "POST":
		return Post
	case "PUT":
		return Put
	case "DELETE":
		return Delete
	case "CONNECT":
		return Connect
	case "OPTIONS":
		return Options
	case "TRACE":
		return Trace
	case "PATCH":
		return Patch
	}
	return OtherMethod
}
