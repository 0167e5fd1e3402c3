import '@mantine/core/styles.css'
import '@mantine/notifications/styles.css'
import '@mantine/spotlight/styles.css'
import './theme/font.css'
import './theme/base.css'
import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { QueryClient, QueryClientProvider, useQuery, useQueryClient } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { setNonce } from 'get-nonce'
import { StrictMode, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { Problem } from './api/problem'
import { me, setupState } from './api/queries'
import { keepSecret, secret } from './api/session'
import { useStore } from './api/store'
import { basket, isKept } from './edit/basket'
import { router } from './router'
import { SetUpPage } from './session/SetUp'
import { finishProvider, SignInAgain, SignInPage } from './session/SignIn'
import { theme, variables } from './theme/theme'
import { Failure } from './ui/basics'

// The server gives every page a nonce; styles made at run time carry it.
const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ''
setNonce(nonce)

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => !(error instanceof Problem) && count < 2,
      staleTime: 2_000,
      refetchOnWindowFocus: true,
    },
  },
})

/** Decides between set-up, sign-in and the console. */
function Gate() {
  const key = useStore(secret)
  const client = useQueryClient()
  const [returning, setReturning] = useState(location.pathname === '/signed-in')
  const [failed, setFailed] = useState<unknown>()
  const setup = useQuery({ ...setupState, enabled: !key })
  const who = useQuery({ ...me, enabled: !!key })

  useEffect(() => {
    if (!returning) return
    void finishProvider()
      .then(() => history.replaceState(null, '', '/'))
      .catch(setFailed)
      .finally(() => setReturning(false))
  }, [returning])
  // Somebody else's data goes with the session.
  useEffect(() => {
    if (!key) basket.set([])
    if (!key) client.removeQueries({ predicate: (q) => q.queryKey[0] !== 'setup' })
  }, [key, client])

  if (returning) return null
  if (failed) return <Failure error={failed} again={() => setFailed(undefined)} />
  if (!key) {
    if (setup.error) return <Failure error={setup.error} again={() => void setup.refetch()} />
    if (!setup.data) return null
    if (setup.data.needed) return <SetUpPage done={() => void client.invalidateQueries({ queryKey: ['setup'] }).then(() => router.navigate({ to: '/', replace: true }))} />
    return <SignInPage provider={!!setup.data.oidc} />
  }
  return (
    <>
      <RouterProvider router={router} />
      <SignInAgain name={who.data?.name} />
    </>
  )
}

// A session kept in the browser that another tab has ended is ended here too.
addEventListener('storage', (e) => {
  if (e.key === 'headgate.session' && e.newValue !== secret.get()) keepSecret(e.newValue)
})

// Edits that no reload brings back are not left without a word.
addEventListener('beforeunload', (e) => {
  if (!isKept()) e.preventDefault()
})

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      defaultColorScheme="auto"
      colorSchemeManager={localStorageColorSchemeManager({ key: 'headgate.scheme' })}
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queries}>
        <Gate />
        <Notifications position="bottom-right" />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
