// What bench/view.py does in the page: each view's action, and the time until it is painted.
() => {
  window.painted = async (act, ready) => {
    const frame = () => new Promise(requestAnimationFrame), start = performance.now();
    act();
    do await frame(); while (!ready());
    await frame();
    return performance.now() - start;
  };
  const go = n => {
    const text = shown.text, line = Math.round(n * text.total);
    return painted(() => text.go(line), () => {
      const row = text.rows.firstElementChild;
      const [at, doc] = row.children;
      return at.textContent === number(text.top) && doc.textContent;
    });
  };
  window.views = {
    list: n => painted(() => select(filtered[n].ref), () => !$("artifact").hidden
      && shown?.ref === filtered[n].ref && $("body").querySelector(".line .doc")?.textContent),
    text: go,
    table: n => {
      const at = $("body").querySelector("[role=status]"), before = at.textContent;
      return painted(() => shown.next(n), () => at.textContent !== before);
    },
    tree: n => {
      const all = $("body").querySelectorAll(".tree button[aria-expanded=false]");
      const button = all[n % all.length];
      return painted(() => button.click(), () => button.parentElement.querySelector("ul"));
    },
    json: go,
  };
}
