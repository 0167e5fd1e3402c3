/** Whether a text is the hash of a password already, in a form that headgate takes. */
export const isHash = (text: string) => /^\$(2[aby]|argon2id|apr1)\$/.test(text)

/** How many bytes of a password bcrypt looks at: what is longer would be cut without a word. */
export const longest = 72
export const tooLong = (text: string) => !isHash(text) && new TextEncoder().encode(text).length > longest

/** What a hash costs to make and to try: 2 to this power rounds. */
export const cost = 10

/** The hash of a password; one that is a hash already is taken as it is. The library is loaded when it is needed. */
export async function hashOf(password: string): Promise<string> {
  return isHash(password) ? password : (await import('bcryptjs')).hash(password, cost)
}
