// A git server on the loopback that wants a token, by `git http-backend`.

import { spawn } from 'node:child_process';
import { createServer } from 'node:http';

/** Serves the repositories below a folder; `takes(header)` says whether an authorization is one. */
export async function serve(folder, takes) {
  const seen = [];
  const server = createServer((request, answer) => {
    const given = request.rawHeaders.filter((name, index) => index % 2 === 0 && /^authorization$/i.test(name)).length;
    seen.push({ url: request.url, given });
    if (given > 1) return answer.writeHead(400).end('duplicate header: "Authorization"');
    if (!takes(request.headers.authorization)) {
      return answer.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
    }
    const { pathname, search } = new URL(request.url, 'http://localhost');
    const child = spawn('git', ['http-backend'], {
      env: {
        PATH: process.env.PATH,
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_PROJECT_ROOT: folder,
        GIT_HTTP_EXPORT_ALL: '1',
        PATH_INFO: decodeURIComponent(pathname),
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        GIT_PROTOCOL: request.headers['git-protocol'] ?? '',
      },
    });
    request.pipe(child.stdin);
    const out = [];
    child.stdout.on('data', (piece) => out.push(piece));
    child.on('close', () => {
      const all = Buffer.concat(out);
      const end = all.indexOf('\r\n\r\n');
      const headers = all.toString('latin1', 0, end).split('\r\n').map((line) => line.split(': '));
      const status = headers.find(([name]) => name === 'Status')?.[1] ?? '200';
      answer.writeHead(Number.parseInt(status, 10), Object.fromEntries(headers.filter(([name]) => name !== 'Status')));
      answer.end(all.subarray(end + 4));
    });
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}`, seen, close: () => server.close() };
}
