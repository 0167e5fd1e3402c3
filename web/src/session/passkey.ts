import { client, data } from '@/api/client'
import { keepSecret } from '@/api/session'

/** The options of a question, which the browser reads as WebAuthn defines them in JSON. */
type Options = PublicKeyCredentialCreationOptionsJSON & PublicKeyCredentialRequestOptionsJSON

async function answer(asked: Promise<Credential | null>): Promise<string> {
  const credential = (await asked) as PublicKeyCredential | null
  if (!credential) throw new Error('no passkey')
  return JSON.stringify(credential)
}

/** Signs in with a passkey of the browser. It throws a Problem, or what the browser says. */
export async function signInWithPasskey() {
  const { options, sealed } = await data(client.POST('/api/v1/session/passkey', { body: {} }))
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as unknown as Options)
  const s = await data(client.PUT('/api/v1/session/passkey', { body: { sealed: sealed!, answer: await answer(navigator.credentials.get({ publicKey })) } }))
  keepSecret(s.secret ?? null)
}

/** Creates a passkey for the user who is signed in. */
export async function addPasskey(name: string, password: string) {
  const { options, sealed } = await data(client.POST('/api/v1/session/passkeys', { body: { current_password: password || undefined } }))
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as unknown as Options)
  return data(client.PUT('/api/v1/session/passkeys', { body: { name, sealed: sealed!, answer: await answer(navigator.credentials.create({ publicKey })) } }))
}
