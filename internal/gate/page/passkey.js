(() => {
  const text = (b) => btoa(String.fromCharCode(...new Uint8Array(b))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')
  const bytes = (s) => Uint8Array.from(atob(s.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0))
  const ids = (list) => list?.map((c) => ({ ...c, id: bytes(c.id) }))
  const ask = async (kind, o) => {
    o.challenge = bytes(o.challenge)
    if (kind === 'get') return navigator.credentials.get({ publicKey: { ...o, allowCredentials: ids(o.allowCredentials) } })
    return navigator.credentials.create({ publicKey: { ...o, user: { ...o.user, id: bytes(o.user.id) }, excludeCredentials: ids(o.excludeCredentials) } })
  }
  const json = (c) => {
    const r = { clientDataJSON: text(c.response.clientDataJSON) }
    for (const name of ['attestationObject', 'authenticatorData', 'signature', 'userHandle']) if (c.response[name]) r[name] = text(c.response[name])
    if (c.response.getTransports) r.transports = c.response.getTransports()
    return JSON.stringify({ id: c.id, rawId: text(c.rawId), type: c.type, response: r, clientExtensionResults: c.getClientExtensionResults() })
  }
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    if (!window.PublicKeyCredential) continue
    form.hidden = false
    form.addEventListener('submit', async (event) => {
      event.preventDefault()
      const button = form.querySelector('button')
      const failed = form.querySelector('.error')
      button.disabled = true
      failed.hidden = true
      try {
        form.elements.answer.value = json(await ask(form.dataset.passkey, JSON.parse(form.dataset.options)))
        form.submit()
      } catch {
        failed.hidden = false
        button.disabled = false
      }
    })
  }
})()
