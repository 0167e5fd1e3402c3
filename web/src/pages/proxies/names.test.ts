import { expect, it } from 'vitest'
import { hostsOf, isHost, nameFor, serverURL } from './names'

it('names a proxy after its host', () => {
  expect(nameFor('shop.example.com', [])).toBe('shop')
  expect(nameFor('www.Example.com', [])).toBe('example')
  expect(nameFor('*.apps.test', ['apps', 'apps-2'])).toBe('apps-3')
  expect(nameFor('', [])).toBe('proxy')
})
it('reads hosts and servers as people type them', () => {
  expect(hostsOf('a.b, c.d  e.f')).toEqual(['a.b', 'c.d', 'e.f'])
  expect(isHost('http://a.b')).toBe(false)
  expect(isHost('*.größe.example')).toBe(true)
  expect(serverURL('10.0.0.7:3000')).toBe('http://10.0.0.7:3000')
  expect(serverURL('app:3000/base')).toBe('http://app:3000/base')
  expect(serverURL('https://a')).toBe('https://a')
  expect(serverURL('http://10.0.0.7:3000/?x#y')).toBe('http://10.0.0.7:3000')
  expect(hostsOf('https://User@App.example.com:8443/login?x=1')).toEqual(['App.example.com'])
  expect(serverURL('unix:/run/app.sock')).toBe('unix:/run/app.sock')
})
