"""The person at a browser, for logins without one: follows the pages of npm's oidc-provider.

    python -m scripts.drive.person ACCOUNT URL

As a program it stands for the browser that a host opens: it logs in and follows the redirect to
the host's own callback.
"""

import re
import sys
from urllib.parse import urljoin, urlsplit

import httpx2

STEPS = 12


def log_in(url: str, account: str) -> str:
    """Follow an authorisation URL through login and consent; return the redirect to the client."""
    provider = urlsplit(url).netloc
    form: dict[str, str] | None = None
    with httpx2.Client(trust_env=False, timeout=30) as browser:
        for _ in range(STEPS):
            answer = browser.post(url, data=form) if form else browser.get(url)
            form = None
            if answer.is_redirect:
                url = urljoin(url, answer.headers["location"])
                if urlsplit(url).netloc != provider:
                    return url
                continue
            action = re.search(r'<form[^>]*action="([^"]+)"', answer.text)
            prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
            if answer.status_code != 200 or not action or not prompt:
                raise RuntimeError(f"{url}: {answer.status_code} {answer.text[:500]}")
            url = urljoin(url, action[1])
            form = {"prompt": prompt[1]}
            if prompt[1] == "login":
                form |= {"login": account, "password": "anything"}
    raise RuntimeError(f"{account} is not logged in after {STEPS} pages, at {url}")


def main() -> None:
    """Log in and bring the code to the client that listens on loopback."""
    account, url = sys.argv[1:]
    callback = log_in(url, account)
    answer = httpx2.get(callback, trust_env=False, timeout=30)
    print(f"{callback.partition('?')[0]}: {answer.status_code}", file=sys.stderr)


if __name__ == "__main__":
    main()
