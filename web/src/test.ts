// Tests run without a browser: what little of one they need stands here.
globalThis.location ??= new URL('http://127.0.0.1:9080/') as unknown as Location
