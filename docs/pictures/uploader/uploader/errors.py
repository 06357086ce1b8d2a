class UploadFailed(Exception):
    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"{url}: the server answered {status}")
        self.status = status
