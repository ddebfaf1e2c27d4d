// A click on a frame makes it as wide as the graph; a click on the lowest one shows all again.
for (const svg of document.querySelectorAll('svg.flame')) {
  const full = svg.viewBox.baseVal.width;
  const frames = [...svg.querySelectorAll('g')].map(g => {
    const name = g.querySelector('title').textContent.replace(/: [\d.]+ (samples|ms).*$/s, '');
    return { g, name, x: +g.dataset.x, w: +g.dataset.w, rect: g.querySelector('rect'), text: g.querySelector('text') };
  });
  const fit = (name, letters) => {
    if (letters < 3) return '';
    if (name.length <= letters) return name;
    const at = name.indexOf('<') > 0 ? name.indexOf('<') : name.length;
    const tail = name.slice(name.slice(0, at).replace(/::$/, '').lastIndexOf('::') + 1).replace(/^:/, '');
    return tail.length <= letters ? tail : tail.slice(0, letters - 1) + '…';
  };
  const zoom = on => {
    const scale = full / on.w;
    for (const f of frames) {
      const below = f.x <= on.x + .01 && f.x + f.w >= on.x + on.w - .01;
      const x = below ? 0 : (f.x - on.x) * scale, w = below ? full : f.w * scale;
      f.g.style.display = x + w <= .2 || x >= full - .2 ? 'none' : '';
      f.rect.setAttribute('x', x); f.rect.setAttribute('width', w);
      f.text.setAttribute('x', x + 3); f.text.textContent = fit(f.name, Math.floor((w - 4) / 6.3));
    }
  };
  for (const f of frames) f.g.addEventListener('click', () => zoom(f));
}
